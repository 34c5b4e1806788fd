/*
 * judge_told.c - groups of a number that is given. Pure.
 */
#include <math.h>

#include "network/discover/judge_parts.h"
#include "network/discover/linkage.h"
#include "network/discover/swaps.h"

#define STARTS 24u       /* random groupings that are polished */
#define STARTS_MANY 8u
#define STARTS_MOST 1u
#define MANY_NODES 200u
#define MOST_NODES 1024u
#define NEAR 1e-9

/* Balances that are tried, from even to any sizes: how far sizes may be from the mean, as a factor; 0: any. */
static const double balances[] = {1, 1.25, 1.5, 2, 3, 0};
#define BALANCES (sizeof(balances) / sizeof(balances[0]))

struct told {
	const struct matrix *matrix;
	uint32_t groups;
	uint64_t seed;
	struct grouping linked; /* average linkage with so many groups */
	const struct grouping *kmeans;
	struct error *err;
};

/* Takes the grouping over if it is nearer inside than the best. */
static void take(const struct told *told, struct grouping *grouping, enum natural_source source, bool polished,
                 struct natural *best, double *least)
{
	double inside = discover_swaps_inside(told->matrix, grouping);

	if (grouping->count == told->groups && (!best->grouping.group_of || inside < *least * (1 - NEAR))) {
		grouping_fini(&best->grouping);
		*best = (struct natural){.grouping = *grouping, .source = source, .polished = polished};
		*least = inside;
		*grouping = (struct grouping){0};
	}
}

/* As it is, made to fit the bounds; and polished. */
static enum esp_status try_start(const struct told *told, struct swaps_bounds bounds, const struct grouping *start,
                                 enum natural_source source, struct natural *best, double *least)
{
	struct grouping fitted = {0}, polished = {0};
	enum esp_status status = grouping_from(&fitted, start->group_of, start->nodes, told->err);

	if (status == ESP_OK)
		status = discover_swaps_fit(told->matrix, bounds, &fitted, told->err);
	if (status == ESP_OK)
		status = grouping_from(&polished, fitted.group_of, fitted.nodes, told->err);
	if (status == ESP_OK)
		status = discover_swaps_polish(told->matrix, bounds, &polished, told->err);
	if (status == ESP_OK) {
		take(told, &fitted, source, false, best, least);
		take(told, &polished, source, true, best, least);
	}
	grouping_fini(&fitted);
	grouping_fini(&polished);
	return status;
}

static enum esp_status try_random(const struct told *told, struct swaps_bounds bounds, struct natural *best,
                                  double *least)
{
	uint32_t n = told->matrix->size, starts = n > MOST_NODES ? STARTS_MOST : n > MANY_NODES ? STARTS_MANY : STARTS;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < starts && status == ESP_OK; i++) {
		struct grouping start = {0};

		status = grouping_random(&start, n, told->groups, told->seed + i, told->err);
		if (status == ESP_OK)
			status = try_start(told, bounds, &start, NATURAL_RANDOM, best, least);
		grouping_fini(&start);
	}
	return status;
}

/* The nearest inside for one balance; `before`: what a stricter one has found, or NULL. */
static enum esp_status solve(const struct told *told, double balance, const struct natural *before,
                             struct natural *out)
{
	const struct swaps_bounds bounds = discover_swaps_bounds(told->matrix->size, told->groups, balance);
	double least = INFINITY;
	enum esp_status status = try_start(told, bounds, &told->linked, NATURAL_LINKAGE, out, &least);

	if (status == ESP_OK && told->kmeans && told->kmeans->count == told->groups)
		status = try_start(told, bounds, told->kmeans, NATURAL_KMEANS, out, &least);
	if (status == ESP_OK && before)
		status = try_start(told, bounds, &before->grouping, before->source, out, &least);
	if (status == ESP_OK && !before)
		status = try_random(told, bounds, out, &least);
	if (status == ESP_OK)
		status = discover_natural_judge(told->matrix, &out->grouping, &out->cost, &out->apart, told->err);
	return status;
}

/* From even to any sizes, each from the one before, so that the distance inside only falls; the fastest is taken. */
static enum esp_status solve_all(const struct told *told, struct natural *out)
{
	struct natural found[BALANCES] = {0};
	enum esp_status status = ESP_OK;
	uint32_t best = 0, made = 0;

	for (uint32_t i = 0; i < BALANCES && status == ESP_OK; i++) {
		status = solve(told, balances[i], i > 0 ? &found[i - 1] : NULL, &found[i]);
		made++;
		if (found[i].cost < found[best].cost * (1 - NEAR))
			best = i;
	}
	for (uint32_t i = 0; i < made; i++)
		if (i != best || status != ESP_OK)
			grouping_fini(&found[i].grouping);
	if (status == ESP_OK)
		*out = found[best];
	return status;
}

enum esp_status discover_told(const struct matrix *matrix, uint32_t groups, double elasticity, uint64_t seed,
                              const struct grouping *kmeans, struct natural *out, struct error *err)
{
	struct told told = {.matrix = matrix, .groups = groups, .seed = seed, .kmeans = kmeans, .err = err};
	struct linkage linkage = {0};

	*out = (struct natural){0};
	if (groups > matrix->size)
		return error_set(err, ESP_EINVAL, "%u groups are asked for, and there are %u hosts to put into them", groups,
		                 matrix->size);
	enum esp_status status = discover_linkage_make(matrix, &linkage, err);
	if (status == ESP_OK)
		status = discover_linkage_cut(&linkage, groups, &told.linked, err);
	if (status == ESP_OK)
		status = elasticity > 0 ? solve(&told, elasticity, NULL, out) : solve_all(&told, out);
	if (status != ESP_OK)
		grouping_fini(&out->grouping);
	grouping_fini(&told.linked);
	discover_linkage_fini(&linkage);
	return status;
}
