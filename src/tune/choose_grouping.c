/*
 * choose_grouping.c - which of several groupings of the same nodes to believe.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/affinity.h"
#include "topo/clean.h"
#include "topo/silhouette.h"
#include "tune/choose.h"

#define CHUNK_BYTES 65536u /* of a call that is compared, unless every node then has less than one */
#define NEAR 1.01          /* costs that differ by less are the same */
#define ALIKE 0.01         /* silhouettes, from -1 to 1, that differ by less are the same */

/* The nodes group by group. */
static void order_by_groups(const uint32_t *group_of, uint32_t nodes, uint32_t groups, uint32_t *first, uint32_t *out_order)
{
	memset(first, 0, (nodes + 1) * sizeof(*first));
	for (uint32_t i = 0; i < nodes; i++)
		first[group_of[i] + 1]++;
	for (uint32_t g = 1; g < groups; g++)
		first[g] += first[g - 1];
	for (uint32_t i = 0; i < nodes; i++)
		out_order[first[group_of[i]]++] = i;
}

/* The fastest plan that the groups allow. */
static enum esp_status cost_grouping(const struct tune_network *network, const uint32_t *group_of, uint64_t bytes,
                                     const uint32_t *order, double *out_seconds, struct error *err)
{
	static const char *const names[] = {"two-level", "ring", "halving-doubling"};
	uint64_t share = bytes / network->nodes, chunk = share > CHUNK_BYTES ? CHUNK_BYTES : share ? share : 1;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < sizeof(names) / sizeof(names[0]); i++) {
		struct tune_load load;

		struct plan_spec how = {
			.chunks = {.collective = PLAN_ALLREDUCE}, .order = i == 0 ? NULL : order, .group_of = i == 0 ? group_of : NULL,
		};

		status = tune_load_planner(plan_planner_find(names[i]), &how, network, &load, err);
		double seconds = status == ESP_OK ? tune_seconds(&load, bytes, chunk) : 0;
		if (i == 0 || seconds < *out_seconds)
			*out_seconds = seconds;
	}
	return status;
}

/* By what plans cost. */
static enum esp_status choose_by_cost(const struct tune_network *network, const uint32_t *const *groupings, uint32_t count,
                                      uint64_t bytes, uint32_t *out_best, double *out_seconds, struct error *err)
{
	uint32_t nodes = network->nodes, best_groups = 0;
	uint32_t *order = calloc(nodes, sizeof(*order)), *first = calloc((size_t)nodes + 1, sizeof(*first));
	double best = 0;
	enum esp_status status = ESP_OK;

	*out_best = 0;
	if (!order || !first) {
		free(order);
		free(first);
		return error_set(err, ESP_ENOMEM, "no memory for %u nodes", nodes);
	}
	for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
		uint32_t groups = 0;
		double seconds = 0;

		for (uint32_t node = 0; node < nodes; node++)
			groups = groupings[i][node] >= groups ? groupings[i][node] + 1 : groups;
		if (groups > nodes) {
			status = error_set(err, ESP_EINVAL, "grouping %u has %u groups of %u nodes", i, groups, nodes);
			break;
		}
		order_by_groups(groupings[i], nodes, groups, first, order);
		status = cost_grouping(network, groupings[i], bytes, order, &seconds, err);
		if (out_seconds)
			out_seconds[i] = seconds;
		bool is_better = i == 0 || seconds * NEAR < best || (seconds < best * NEAR && groups < best_groups);
		if (status == ESP_OK && is_better) {
			best = seconds;
			best_groups = groups;
			*out_best = i;
		}
	}
	free(order);
	free(first);
	return status;
}

/* ---- without bandwidths ---- */

/* How many times as far as the nearest, as a logarithm, without what is far beyond all others. A latency of 0 counts as the shortest other one. */
static enum esp_status take_distances(const struct tune_network *network, struct matrix *out, struct error *err)
{
	const struct matrix measured = {.size = network->nodes, .at = (double *)(uintptr_t)network->latency};
	double least = INFINITY;
	enum esp_status status = matrix_copy(out, &measured, err);

	if (status != ESP_OK)
		return status;
	for (size_t i = 0; i < (size_t)out->size * out->size; i++)
		least = out->at[i] > 0 ? fmin(least, out->at[i]) : least;
	for (size_t i = 0; i < (size_t)out->size * out->size; i++)
		out->at[i] = out->at[i] > 0 ? log(out->at[i] / least) : out->at[i]; /* 0 and NAN stay */
	return clean_fence(out, NULL, err);
}

/*
 * Of groupings that are more likely than one group, the one whose groups are the most by themselves: near inside, compared with how far the next
 * group is, on average over groups and not over nodes, as a plan waits for its worst group. Evidence alone would say which gap is the widest;
 * where racks stand in rows that is the one between rows, and what is scarce is what leaves a rack.
 */
static enum esp_status choose_by_distance(const struct affinity *affinity, const struct grouping *groupings, uint32_t count, uint32_t *out_best,
                                          struct error *err)
{
	double best = -INFINITY;

	for (uint32_t i = 0; i < count; i++) {
		struct affinity_verdict verdict;
		enum esp_status status = affinity_judge(affinity, &groupings[i], &verdict, err);
		double apart = status == ESP_OK ? silhouette_of_groups(affinity->matrix, &groupings[i]) : 0;

		if (status == ESP_OK && isnan(apart))
			status = error_set(err, ESP_ENOMEM, "no memory for %u nodes", affinity->nodes);
		if (status != ESP_OK)
			return status;
		if (groupings[i].count > 1 && verdict.evidence <= 0)
			apart = -1 - (double)groupings[i].count; /* the fewest groups, if none has more for it */
		if (apart > best + ALIKE || (apart > best - ALIKE && groupings[i].count < groupings[*out_best].count)) {
			best = apart;
			*out_best = i;
		}
	}
	return ESP_OK;
}

static enum esp_status choose_by_latency(const struct tune_network *network, const uint32_t *const *groupings, uint32_t count, uint32_t *out_best,
                                         struct error *err)
{
	struct grouping *list = calloc(count > 0 ? count : 1, sizeof(*list));
	struct affinity affinity = {0};
	struct matrix distances = {0};

	if (!list)
		return error_set(err, ESP_ENOMEM, "no memory for %u groupings", count);
	enum esp_status status = take_distances(network, &distances, err);
	if (status == ESP_OK)
		status = affinity_init(&affinity, &distances, false, err);
	for (uint32_t i = 0; status == ESP_OK && i < count; i++)
		status = grouping_from(&list[i], groupings[i], network->nodes, err);
	if (status == ESP_OK)
		status = choose_by_distance(&affinity, list, count, out_best, err);
	for (uint32_t i = 0; i < count; i++)
		grouping_fini(&list[i]);
	free(list);
	affinity_fini(&affinity);
	matrix_fini(&distances);
	return status;
}

enum esp_status tune_choose_grouping(const struct tune_network *network, const uint32_t *const *groupings, uint32_t count, uint64_t bytes,
                                     uint32_t *out_best, double *out_seconds, struct error *err)
{
	bool by_latency = !network->topology && !network->seconds_per_byte;
	enum esp_status status = by_latency && !out_seconds ? ESP_OK : choose_by_cost(network, groupings, count, bytes, out_best, out_seconds, err);

	if (status == ESP_OK && by_latency) {
		*out_best = 0;
		status = choose_by_latency(network, groupings, count, out_best, err);
	}
	return status;
}
