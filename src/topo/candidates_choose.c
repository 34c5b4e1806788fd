/*
 * candidates_choose.c - which candidate the distances alone speak for, and whether chance would have found one as good.
 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "topo/candidates.h"
#include "topo/clean.h"
#include "topo/median.h"
#include "topo/quality.h"

#define SHUFFLES_DEFAULT 19u /* with none of them as good, chance is 1 in 20 */
#define CHANCE_MOST 0.05
#define SHUFFLED_TRIES 2u
#define AGREEING_RUNS 4u

static uint32_t clearest(const struct candidates *candidates)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < candidates->count; i++) {
		if (candidates->list[i].silhouette > candidates->list[best].silhouette)
			best = i;
	}
	return best;
}

/* A smaller search, the same for the measured matrix and for shuffled ones: what the clearest grouping has. */
static enum esp_status search_clearest(const struct matrix *matrix, const struct candidates_options *options, double *out,
                                       struct error *err)
{
	struct candidates_options small = *options;
	struct candidates found;

	small.embed.restarts = 1;
	small.tries = SHUFFLED_TRIES;
	enum esp_status status = candidates_make(matrix, &small, &found, err);
	if (status != ESP_OK)
		return status;
	*out = found.list[clearest(&found)].silhouette;
	candidates_fini(&found);
	return ESP_OK;
}

/* The distances without the nodes' own parts, dealt out anew among the pairs that are known. */
static void shuffle(const struct matrix *matrix, const double *own, struct rng *rng, double *rest, struct matrix *out)
{
	size_t count = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double value = matrix_get(matrix, i, j);

			if (isnan(value))
				continue;
			size_t other = rng_below(rng, count + 1);
			rest[count++] = rest[other];
			rest[other] = value - own[i] - own[j];
		}
	}
	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double value = matrix_get(matrix, i, j);

			matrix_set(out, i, j, isnan(value) ? NAN : fmax(rest[--count] + own[i] + own[j], 0));
		}
	}
}

static enum esp_status judge_chance(const struct matrix *matrix, const struct candidates_options *options, uint32_t shuffles,
                                    double *out, struct error *err)
{
	struct matrix shuffled = {0};
	double *own = calloc(matrix->size, sizeof(*own)), *rest = calloc((size_t)matrix->size * matrix->size / 2 + 1, sizeof(*rest));
	double real = 0, other = 0;
	uint32_t as_good = 0;
	struct rng rng;
	enum esp_status status = own && rest ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for the distances of %u nodes", matrix->size);

	if (status == ESP_OK)
		status = matrix_copy(&shuffled, matrix, err);
	if (status == ESP_OK)
		status = clean_own(matrix, own, err);
	if (status == ESP_OK)
		status = search_clearest(matrix, options, &real, err);
	rng_init(&rng, options->seed);
	for (uint32_t i = 0; status == ESP_OK && i < shuffles; i++) {
		shuffle(matrix, own, &rng, rest, &shuffled);
		status = search_clearest(&shuffled, options, &other, err);
		as_good += other >= real;
	}
	*out = (as_good + 1.0) / (shuffles + 1.0);
	matrix_fini(&shuffled);
	free(own);
	free(rest);
	return status;
}

/* Medians of the measured distances, inside groups and between them. */
static enum esp_status measure_sides(const struct matrix *matrix, const struct grouping *grouping, struct candidates_choice *out,
                                     struct error *err)
{
	double *values = calloc((size_t)matrix->size * matrix->size / 2 + 1, sizeof(*values));

	if (!values)
		return error_set(err, ESP_ENOMEM, "no memory for the distances of %u nodes", matrix->size);
	for (int is_across = 0; is_across < 2; is_across++) {
		size_t count = 0;

		for (uint32_t i = 0; i < matrix->size; i++) {
			for (uint32_t j = 0; j < i; j++) {
				double value = matrix_get(matrix, i, j);

				if (!isnan(value) && (grouping->group_of[i] != grouping->group_of[j]) == is_across)
					values[count++] = value;
			}
		}
		*(is_across ? &out->across : &out->within) = count > 0 ? median(values, count) : NAN;
	}
	free(values);
	return ESP_OK;
}

/* What other seeds, from the embedding on, make of it with as many groups. */
static enum esp_status measure_agreement(const struct matrix *matrix, const struct candidates_options *options,
                                         const struct grouping *chosen, double *out, struct error *err)
{
	struct candidates_options other = *options;
	enum esp_status status = ESP_OK;
	uint64_t seed = options->seed;
	double sum = 0;

	other.embed.restarts = 1;
	other.groups_least = other.groups_most = chosen->count;
	for (uint32_t i = 0; status == ESP_OK && i < AGREEING_RUNS; i++) {
		struct candidates found;

		other.seed = rng_splitmix(&seed);
		status = candidates_make(matrix, &other, &found, err);
		if (status != ESP_OK)
			break;
		sum += quality_ami(chosen, &found.list[0].grouping);
		candidates_fini(&found);
	}
	*out = sum / AGREEING_RUNS;
	return status;
}

enum esp_status candidates_choose(const struct matrix *matrix, const struct candidates_options *options,
                                  const struct candidates *candidates, uint32_t shuffles, struct candidates_choice *out,
                                  struct error *err)
{
	struct candidates_choice choice = {.index = clearest(candidates), .chance = 1};
	enum esp_status status = ESP_OK;

	if (choice.index > 0) /* one group cannot be told from chance, and need not be */
		status = judge_chance(matrix, options, shuffles > 0 ? shuffles : SHUFFLES_DEFAULT, &choice.chance, err);
	if (choice.chance > CHANCE_MOST)
		choice.index = 0;
	const struct candidate *chosen = &candidates->list[choice.index];
	choice.silhouette = chosen->silhouette;
	if (status == ESP_OK)
		status = measure_sides(matrix, &chosen->grouping, &choice, err);
	if (status == ESP_OK)
		status = measure_agreement(matrix, options, &chosen->grouping, &choice.agreement, err);
	if (status == ESP_OK)
		*out = choice;
	return status;
}
