/*
 * candidates_choose.c - chooses a candidate by the distances alone, and computes its certainty. Pure.
 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "network/discover/affinity.h"
#include "network/discover/candidates_parts.h"
#include "network/discover/median.h"
#include "network/discover/quality.h"

#define AGREEING_RUNS 4u
#define AGREEING_RUNS_MANY 2u /* with many nodes each run tells more, and takes longer */
#define MANY_NODES 256u
/*
 * Odds of twenty to one: of 300 matrices of one rack of 8, up to 6 have a grouping with evidence above 0, none
 * above 3.
 */
#define EVIDENCE_LEAST 3.0

static uint32_t strongest(const struct candidates *candidates)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < candidates->count; i++) {
		if (candidates->list[i].evidence > candidates->list[best].evidence)
			best = i;
	}
	return candidates->list[best].evidence > EVIDENCE_LEAST ? best : 0;
}

static enum esp_status weigh_rivals(const struct matrix *matrix, const struct candidates_options *options,
                                    const struct grouping *grouping, double *out, struct error *err)
{
	struct affinity affinity = {0};
	struct matrix cleaned = {0};
	enum esp_status status = discover_candidates_clean(matrix, options, &cleaned, err);

	if (status == ESP_OK)
		status = discover_affinity_init(&affinity, &cleaned, options->ways, err);
	if (status == ESP_OK)
		status = discover_affinity_rivals(&affinity, grouping, out, err);
	discover_affinity_fini(&affinity);
	matrix_fini(&cleaned);
	return status;
}

/* Odds are exponentials of the evidence. A rival that is also a candidate counts twice, which is on the safe side. */
enum esp_status discover_candidates_sure(const struct matrix *matrix, const struct candidates_options *options,
                                         const struct candidates *candidates, uint32_t index, double *out,
                                         struct error *err)
{
	double rivals = 0, sum = 0;
	enum esp_status status = weigh_rivals(matrix, options, &candidates->list[index].grouping, &rivals, err);

	for (uint32_t i = 0; i < candidates->count; i++)
		sum += exp(candidates->list[i].evidence - candidates->list[index].evidence);
	*out = 1 / (sum + rivals);
	return status;
}

/* Medians of the measured distances, within groups and between them. */
static enum esp_status measure_sides(const struct matrix *matrix, const struct grouping *grouping,
                                     struct candidates_choice *out, struct error *err)
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

/* The agreement with the results of other seeds, embedding included, for the same number of groups. */
static enum esp_status measure_agreement(const struct matrix *matrix, const struct candidates_options *options,
                                         const struct grouping *chosen, double *out, struct error *err)
{
	struct candidates_options other = *options;
	enum esp_status status = ESP_OK;
	uint64_t seed = options->seed;
	uint32_t runs = matrix->size > MANY_NODES ? AGREEING_RUNS_MANY : AGREEING_RUNS;
	double sum = 0;

	other.embed.restarts = 1;
	other.only = NULL;
	other.groups_least = other.groups_most = chosen->count;
	for (uint32_t i = 0; status == ESP_OK && i < runs; i++) {
		struct candidates found;

		other.seed = rng_splitmix(&seed);
		status = discover_candidates_make(matrix, &other, &found, err);
		if (status != ESP_OK)
			break;
		sum += discover_quality_ami(chosen, &found.list[0].grouping);
		discover_candidates_fini(&found);
	}
	*out = sum / runs;
	return status;
}

enum esp_status discover_candidates_choose(const struct matrix *matrix, const struct candidates_options *options,
                                           const struct candidates *candidates, struct candidates_choice *out,
                                           struct error *err)
{
	struct candidates_choice choice = {.index = strongest(candidates)};
	const struct grouping *chosen = &candidates->list[choice.index].grouping;
	enum esp_status status = measure_sides(matrix, chosen, &choice, err);

	if (status == ESP_OK)
		status = discover_candidates_sure(matrix, options, candidates, choice.index, &choice.sure, err);
	if (status == ESP_OK)
		status = measure_agreement(matrix, options, chosen, &choice.agreement, err);
	if (status == ESP_OK)
		*out = choice;
	return status;
}
