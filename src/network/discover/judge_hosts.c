/*
 * judge_hosts.c - how clearly each host belongs to its group, beside the noise of the distances. Pure.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/discover/judge_parts.h"

/* In deviations of the difference: what one host of a thousand, or of twenty, would reach by chance. */
#define CLEAR 5.0
#define LIKELY 3.0

/* The distances of a host to each group. */
struct rows {
	const struct matrix *matrix;
	const struct grouping *grouping;
	double *sum, *count; /* groups */
};

static void gather(const struct rows *rows, uint32_t host)
{
	memset(rows->sum, 0, rows->grouping->count * sizeof(*rows->sum));
	memset(rows->count, 0, rows->grouping->count * sizeof(*rows->count));
	for (uint32_t j = 0; j < rows->matrix->size; j++)
		if (j != host) {
			rows->sum[rows->grouping->group_of[j]] += matrix_get(rows->matrix, host, j);
			rows->count[rows->grouping->group_of[j]]++;
		}
}

/* The variance of distances about the mean to their group, as a share of that mean. */
static double scatter(const struct rows *rows)
{
	double sum = 0, count = 0;

	for (uint32_t i = 0; i < rows->matrix->size; i++) {
		gather(rows, i);
		for (uint32_t j = 0; j < rows->matrix->size; j++) {
			uint32_t to = rows->grouping->group_of[j];
			double mean = rows->sum[to] / rows->count[to];

			if (j == i || rows->count[to] < 2 || !(mean > 0))
				continue;
			double away = matrix_get(rows->matrix, i, j) / mean - 1;
			sum += away * away * rows->count[to] / (rows->count[to] - 1);
			count++;
		}
	}
	return count > 0 ? sum / count : 0;
}

/* By how many deviations the next group is further than the own one; INFINITY: the host is alone. */
static double margin(const struct rows *rows, uint32_t host, double variance)
{
	uint32_t own = rows->grouping->group_of[host];
	double least = INFINITY;

	gather(rows, host);
	double inside = rows->sum[own] / rows->count[own];
	for (uint32_t to = 0; to < rows->grouping->count && rows->count[own] > 0; to++) {
		if (to == own)
			continue;
		double outside = rows->sum[to] / rows->count[to];
		double deviation = sqrt(variance * (inside * inside / rows->count[own] + outside * outside / rows->count[to]));
		least = fmin(least, deviation > 0 ? (outside - inside) / deviation : outside > inside ? INFINITY : -INFINITY);
	}
	return least;
}

enum esp_status discover_natural_word(const struct matrix *matrix, const struct grouping *grouping,
                                      enum verdict_word *out, struct error *err)
{
	struct rows rows = {.matrix = matrix, .grouping = grouping,
	                    .sum = calloc(grouping->count, sizeof(*rows.sum)),
	                    .count = calloc(grouping->count, sizeof(*rows.count))};
	double least = INFINITY;
	enum esp_status status =
		rows.sum && rows.count ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u groups", grouping->count);

	if (status == ESP_OK) {
		double variance = scatter(&rows);
		for (uint32_t i = 0; i < matrix->size; i++)
			least = fmin(least, margin(&rows, i, variance));
		*out = least >= CLEAR ? VERDICT_SURE : least >= LIKELY ? VERDICT_LIKELY : VERDICT_UNSURE;
	}
	free(rows.sum);
	free(rows.count);
	return status;
}
