#include "network/discover/smooth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 10 /* of fitting sums alternately; half a step each time, as all rows move at once */

struct fit {
	const struct matrix *matrix;
	const struct grouping *grouping;
	double *own, *next;          /* by node */
	double *measured, *expected; /* by pair of groups: sums of the distances, and of the products of own parts */
};

static size_t pair_of(const struct fit *fit, uint32_t i, uint32_t j)
{
	return (size_t)fit->grouping->group_of[i] * fit->grouping->count + fit->grouping->group_of[j];
}

static double level(const struct fit *fit, size_t pair)
{
	return fit->expected[pair] > 0 ? fit->measured[pair] / fit->expected[pair] : NAN;
}

static void fit_levels(struct fit *fit)
{
	uint32_t n = fit->matrix->size;
	size_t pairs = (size_t)fit->grouping->count * fit->grouping->count;

	memset(fit->measured, 0, pairs * sizeof(*fit->measured));
	memset(fit->expected, 0, pairs * sizeof(*fit->expected));
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++) {
			double distance = matrix_get(fit->matrix, i, j);

			if (i == j || isnan(distance))
				continue;
			fit->measured[pair_of(fit, i, j)] += distance;
			fit->expected[pair_of(fit, i, j)] += fit->own[i] * fit->own[j];
		}
	}
}

static void fit_own(struct fit *fit)
{
	uint32_t n = fit->matrix->size;

	for (uint32_t i = 0; i < n; i++) {
		double measured = 0, expected = 0;

		for (uint32_t j = 0; j < n; j++) {
			double distance = matrix_get(fit->matrix, i, j);

			if (i == j || isnan(distance))
				continue;
			measured += distance;
			expected += level(fit, pair_of(fit, i, j)) * fit->own[i] * fit->own[j];
		}
		fit->next[i] = measured > 0 && expected > 0 ? fit->own[i] * sqrt(measured / expected) : fit->own[i];
	}
	memcpy(fit->own, fit->next, n * sizeof(*fit->own));
}

static enum esp_status fit_init(struct fit *fit, struct error *err)
{
	uint32_t n = fit->matrix->size;
	size_t pairs = (size_t)fit->grouping->count * fit->grouping->count;

	fit->own = calloc(n, sizeof(*fit->own));
	fit->next = calloc(n, sizeof(*fit->next));
	fit->measured = calloc(pairs, sizeof(*fit->measured));
	fit->expected = calloc(pairs, sizeof(*fit->expected));
	if (!fit->own || !fit->next || !fit->measured || !fit->expected)
		return error_set(err, ESP_ENOMEM, "no memory to smooth the distances of %u nodes", n);
	for (uint32_t i = 0; i < n; i++)
		fit->own[i] = 1;
	return ESP_OK;
}

static void fit_fini(struct fit *fit)
{
	free(fit->own);
	free(fit->next);
	free(fit->measured);
	free(fit->expected);
}

enum esp_status discover_smooth_by_groups(const struct matrix *matrix, const struct grouping *grouping,
                                          struct matrix *out, struct error *err)
{
	struct fit fit = {.matrix = matrix, .grouping = grouping};
	enum esp_status status = fit_init(&fit, err);

	if (status == ESP_OK)
		status = matrix_init(out, matrix->size, err);
	if (status != ESP_OK) {
		fit_fini(&fit);
		return status;
	}
	fit_levels(&fit);
	for (int round = 0; round < ROUNDS; round++) {
		fit_own(&fit);
		fit_levels(&fit);
	}
	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(out, i, j, level(&fit, pair_of(&fit, i, j)) * fit.own[i] * fit.own[j]);
	}
	fit_fini(&fit);
	return ESP_OK;
}
