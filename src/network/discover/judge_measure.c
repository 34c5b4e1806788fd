/*
 * judge_measure.c - how far groups are apart, and how much each host belongs to its own. Pure.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/discover/judge_parts.h"

static enum esp_status measure_gap(const struct matrix *matrix, struct verdict *verdict, struct error *err)
{
	uint32_t n = matrix->size, inside = 0, outside = 0;
	double *values = calloc((size_t)n * n, sizeof(*values)), *others = values ? values + (size_t)n * (n - 1) / 2 : NULL;

	if (!values)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			double each = matrix_get(matrix, i, j);
			if (!isfinite(each))
				continue;
			if (verdict->grouping.group_of[i] == verdict->grouping.group_of[j])
				values[inside++] = each;
			else
				others[outside++] = each;
		}
	verdict->within = discover_quantile(values, inside, 0.5);
	verdict->across = discover_quantile(others, outside, 0.5);
	free(values);
	return ESP_OK;
}

/* The distances of a host to the hosts of a group. */
struct nearness {
	double sum;
	uint32_t known;
};

static double mean_of(const struct nearness *one)
{
	return one->known ? one->sum / one->known : NAN;
}

/* to: scratch, one per group. */
static double belonging_of(const struct matrix *matrix, const struct grouping *grouping, uint32_t host,
                           struct nearness *to)
{
	double next = INFINITY;

	memset(to, 0, grouping->count * sizeof(*to));
	for (uint32_t j = 0; j < matrix->size; j++)
		if (j != host && isfinite(matrix_get(matrix, host, j))) {
			to[grouping->group_of[j]].sum += matrix_get(matrix, host, j);
			to[grouping->group_of[j]].known++;
		}
	double own = mean_of(&to[grouping->group_of[host]]);
	for (uint32_t g = 0; g < grouping->count; g++)
		if (g != grouping->group_of[host])
			next = fmin(next, mean_of(&to[g])); /* fmin ignores NAN */
	if (!isfinite(own) || !isfinite(next) || fmax(own, next) <= 0)
		return 0;
	return (next - own) / fmax(own, next);
}

static enum esp_status measure_belonging(const struct matrix *matrix, struct verdict *verdict, struct error *err)
{
	struct nearness *to = calloc(verdict->grouping.count, sizeof(*to));

	verdict->belonging = calloc(matrix->size, sizeof(*verdict->belonging));
	if (!to || !verdict->belonging) {
		free(to);
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", matrix->size);
	}
	verdict->doubtful = 0;
	for (uint32_t i = 0; i < matrix->size; i++) {
		verdict->belonging[i] = belonging_of(matrix, &verdict->grouping, i, to);
		if (verdict->belonging[i] < verdict->belonging[verdict->doubtful])
			verdict->doubtful = i;
	}
	free(to);
	return ESP_OK;
}

enum esp_status discover_verdict_measure(const struct survey *survey, struct verdict *verdict, struct error *err)
{
	const struct matrix *matrix = &survey->matrices[verdict->kind];
	enum esp_status status = measure_gap(matrix, verdict, err);

	return status == ESP_OK ? measure_belonging(matrix, verdict, err) : status;
}
