#include "studies/discover_agreement.h"

#include <stdlib.h>

#include "network/discover/clean.h"
#include "network/discover/cluster.h"
#include "network/discover/quality.h"

static enum esp_status group_once(const struct agreement_config *config, const struct matrix *read, double alpha,
                                  uint64_t seed, struct grouping *out, struct error *err)
{
	uint32_t machines = read->size, groups = discover_root(machines);
	struct embed_options options = config->embed;
	struct embedding embedding;

	options.alpha = alpha;
	options.seed = seed;
	enum esp_status status = discover_embed(read, &options, &embedding, err);
	if (status != ESP_OK)
		return status;
	const struct cluster_options cluster = {
		.groups = groups, .least = discover_cluster_least(machines, groups, config->elasticity), .seed = seed};
	status = discover_cluster_points(embedding.points, machines, embedding.dimensions, &cluster, out, NULL, err);
	discover_embedding_fini(&embedding);
	return status;
}

/* One run: both exponents on the same readings. */
static enum esp_status run_once(const struct agreement_config *config, uint32_t run, struct grouping *out_one,
                                struct grouping *out_two, struct error *err)
{
	uint64_t read_seed = config->seed + (config->fresh ? run : 0);
	struct discover_case made;
	struct matrix read = {0};
	enum esp_status status = discover_open(&made, &config->spec, config->seed, read_seed, err);

	if (status != ESP_OK)
		return status;
	status = reading_latency(&made.region, &made.crowd, config->noise, config->level, read_seed, &read, err);
	if (status == ESP_OK && !config->keep_outliers)
		status = discover_clean_fence(&read, NULL, err);
	if (status == ESP_OK)
		status = group_once(config, &read, 1, config->seed + run, out_one, err);
	if (status == ESP_OK)
		status = group_once(config, &read, 2, config->seed + run, out_two, err);
	matrix_fini(&read);
	discover_close(&made);
	return status;
}

static double mean_between(const struct grouping *list, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < i; k++)
			sum += discover_quality_ami(&list[i], &list[k]);
	}
	return sum / ((double)count * (count - 1) / 2);
}

static double mean_with(const struct grouping *list, uint32_t count, const struct grouping *truth)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += discover_quality_ami(&list[i], truth);
	return sum / count;
}

static enum esp_status judge(const struct agreement_config *config, struct grouping *const found[2],
                             struct agreement_result *out, struct error *err)
{
	struct region region;
	struct grouping racks = {0}, rows = {0};
	enum esp_status status = region_init(&region, &config->spec, config->seed, err);

	if (status != ESP_OK)
		return status;
	status = region_grouping(&region, REGION_RACK, &racks, err);
	if (status == ESP_OK)
		status = region_grouping(&region, REGION_ROW, &rows, err);
	for (int i = 0; i < 2 && status == ESP_OK; i++) {
		out->between[i] = mean_between(found[i], config->runs);
		out->truth[i] = mean_with(found[i], config->runs, &racks);
		out->rows[i] = mean_with(found[i], config->runs, &rows);
	}
	grouping_fini(&racks);
	grouping_fini(&rows);
	region_fini(&region);
	return status;
}

enum esp_status agreement_run(const struct agreement_config *config, struct agreement_result *out, struct error *err)
{
	struct grouping *found[2] = {calloc(config->runs, sizeof(**found)), calloc(config->runs, sizeof(**found))};
	enum esp_status status = ESP_OK;

	*out = (struct agreement_result){.groups = discover_root(config->spec.machines)};
	if (!found[0] || !found[1])
		status = error_set(err, ESP_ENOMEM, "no memory for %u runs", config->runs);
	for (uint32_t run = 0; run < config->runs && status == ESP_OK; run++) {
		status = run_once(config, run, &found[0][run], &found[1][run], err);
		if (status == ESP_OK)
			discover_tell(&config->watch);
	}
	if (status == ESP_OK)
		status = judge(config, found, out, err);
	for (uint32_t run = 0; run < config->runs; run++) {
		for (int i = 0; i < 2; i++) {
			if (found[i])
				grouping_fini(&found[i][run]);
		}
	}
	free(found[0]);
	free(found[1]);
	return status;
}
