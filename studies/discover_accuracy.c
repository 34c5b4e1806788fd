#include "studies/discover_accuracy.h"

#include <math.h>

#include "network/discover/clean.h"
#include "network/discover/quality.h"

static void range_add(struct accuracy_range *range, double value, uint32_t nth)
{
	range->mean += value;
	range->least = nth == 0 || value < range->least ? value : range->least;
	range->most = nth == 0 || value > range->most ? value : range->most;
}

static enum esp_status embedded_paia(const struct matrix *read, const struct racks *truth, struct embed_options options,
                                     double alpha, uint64_t seed, double *out_paia, struct error *err)
{
	struct embedding embedding;
	struct matrix distances = {0};

	options.alpha = alpha;
	options.seed = seed;
	enum esp_status status = discover_embed(read, &options, &embedding, err);
	if (status != ESP_OK)
		return status;
	status = discover_embedding_matrix(&embedding, false, &distances, err);
	if (status == ESP_OK)
		*out_paia = discover_quality_paia(&distances, truth, NULL);
	matrix_fini(&distances);
	discover_embedding_fini(&embedding);
	return status;
}

static enum esp_status run_case(const struct accuracy_config *config, uint32_t nth, const struct discover_case *made,
                                struct matrix *read, struct accuracy_result *out, struct error *err)
{
	const struct racks *truth = &made->region.truth;
	uint64_t triplets = 0, seed = config->seed + nth;
	double raw = discover_quality_paia(read, truth, &triplets), alpha1 = 0, alpha2 = 0;
	enum esp_status status = config->keep_outliers ? ESP_OK : discover_clean_fence(read, NULL, err);

	if (status == ESP_OK)
		status = embedded_paia(read, truth, config->embed, 1, seed, &alpha1, err);
	if (status == ESP_OK)
		status = embedded_paia(read, truth, config->embed, 2, seed, &alpha2, err);
	range_add(&out->raw, raw, nth);
	range_add(&out->alpha1, alpha1, nth);
	range_add(&out->alpha2, alpha2, nth);
	out->alpha1_won += alpha1 > raw;
	out->alpha2_won += alpha2 > raw;
	out->triplets += (double)triplets;
	for (unsigned level = 0; level < REGION_LEVELS; level++)
		out->held[level] += region_held(&made->region, (enum region_level)level);
	return status;
}

static enum esp_status take(const struct accuracy_config *config, const struct discover_case *made, uint64_t seed,
                            struct matrix *out, struct error *err)
{
	if (config->probe == ACCURACY_BANDWIDTH)
		return reading_bandwidth(&made->region, &made->crowd, seed, out, err);
	return reading_latency(&made->region, &made->crowd, config->noise, config->level, seed, out, err);
}

enum esp_status accuracy_run(const struct accuracy_config *config, struct accuracy_result *out, struct error *err)
{
	enum esp_status status = ESP_OK;

	*out = (struct accuracy_result){0};
	for (uint32_t i = 0; i < config->count && status == ESP_OK; i++) {
		struct discover_case made;
		struct matrix read = {0};

		status = discover_open(&made, &config->spec, config->seed + i, config->seed + i, err);
		if (status != ESP_OK)
			break;
		status = take(config, &made, config->seed + i, &read, err);
		if (status == ESP_OK)
			status = run_case(config, i, &made, &read, out, err);
		if (status == ESP_OK)
			discover_tell(&config->watch);
		matrix_fini(&read);
		discover_close(&made);
	}
	out->raw.mean /= config->count;
	out->alpha1.mean /= config->count;
	out->alpha2.mean /= config->count;
	out->triplets /= config->count;
	for (unsigned level = 0; level < REGION_LEVELS; level++)
		out->held[level] /= config->count;
	return status;
}
