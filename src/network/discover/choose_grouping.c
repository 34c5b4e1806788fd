/*
 * choose_grouping.c - chooses one of several groupings of the same nodes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/discover/affinity.h"
#include "network/discover/clean.h"
#include "network/discover/silhouette.h"
#include "network/discover/smooth.h"
#include "network/discover/choose_grouping.h"

#define CHUNK_BYTES 65536u /* of the compared call, unless a node's share is smaller */
#define NEAR 1.01          /* costs that differ by less are equal */
#define ALIKE 0.01         /* silhouettes, from -1 to 1, that differ by less are equal */

/* Orders the nodes by group. */
static void order_by_groups(const uint32_t *group_of, uint32_t nodes, uint32_t groups, uint32_t *first,
                            uint32_t *out_order)
{
	memset(first, 0, (nodes + 1) * sizeof(*first));
	for (uint32_t i = 0; i < nodes; i++)
		first[group_of[i] + 1]++;
	for (uint32_t g = 1; g < groups; g++)
		first[g] += first[g - 1];
	for (uint32_t i = 0; i < nodes; i++)
		out_order[first[group_of[i]]++] = i;
}

/* The time of the fastest plan for the groups. */
static enum esp_status cost_grouping(const struct tune_network *network, const uint32_t *group_of, uint64_t bytes,
                                     const uint32_t *order, double *out_seconds, struct error *err)
{
	static const char *const names[] = {"two-level", "ring", "halving-doubling"};
	uint64_t share = bytes / network->nodes, chunk = share > CHUNK_BYTES ? CHUNK_BYTES : share ? share : 1;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < sizeof(names) / sizeof(names[0]); i++) {
		struct tune_load load;

		struct plan_spec how = {
			.chunks = {.collective = PLAN_ALLREDUCE}, .order = i == 0 ? NULL : order,
			    .group_of = i == 0 ? group_of : NULL,
		};

		status = tune_load_planner(plan_planner_find(names[i]), &how, network, &load, err);
		double seconds = status == ESP_OK ? tune_seconds(&load, bytes, chunk) : 0;
		if (i == 0 || seconds < *out_seconds)
			*out_seconds = seconds;
	}
	return status;
}

/* ---- measured networks ---- */

/* Groupings of a network with measured distances. */
struct contest {
	const struct tune_network *network;
	struct matrix logs; /* logarithms relative to the nearest, with outliers clipped; empty for a topology */
	double least;       /* the nearest */
	struct affinity affinity;
	struct grouping *list;
	uint32_t count;
};

/* A distance of 0 counts as the shortest other one. */
static enum esp_status read_distances(struct contest *contest, struct error *err)
{
	const struct tune_network *network = contest->network;
	const double *at = network->seconds_per_byte ? network->seconds_per_byte : network->latency;
	const struct matrix measured = {.size = network->nodes, .at = (double *)(uintptr_t)at};
	struct matrix *logs = &contest->logs;
	double least = INFINITY;
	enum esp_status status = matrix_copy(logs, &measured, err);

	if (status != ESP_OK)
		return status;
	for (size_t i = 0; i < (size_t)logs->size * logs->size; i++)
		least = logs->at[i] > 0 ? fmin(least, logs->at[i]) : least;
	for (size_t i = 0; i < (size_t)logs->size * logs->size; i++)
		logs->at[i] = logs->at[i] > 0 ? log(logs->at[i] / least) : logs->at[i]; /* 0 and NAN stay */
	contest->least = least;
	return discover_clean_fence(logs, NULL, err);
}

static enum esp_status contest_init(struct contest *contest, const struct tune_network *network,
                                    const uint32_t *const *groupings, uint32_t count, struct error *err)
{
	*contest = (struct contest){.network = network, .list = calloc(count > 0 ? count : 1, sizeof(*contest->list)),
	                            .count = count};
	if (!contest->list)
		return error_set(err, ESP_ENOMEM, "no memory for %u groupings", count);
	enum esp_status status = network->topology ? ESP_OK : read_distances(contest, err);
	if (status == ESP_OK && !network->topology)
		status = discover_affinity_init(&contest->affinity, &contest->logs, false, err);
	for (uint32_t i = 0; status == ESP_OK && i < count; i++)
		status = grouping_from(&contest->list[i], groupings[i], network->nodes, err);
	return status;
}

static void contest_fini(struct contest *contest)
{
	for (uint32_t i = 0; i < contest->count && contest->list; i++)
		grouping_fini(&contest->list[i]);
	free(contest->list);
	discover_affinity_fini(&contest->affinity);
	matrix_fini(&contest->logs);
}

/* True for one group, and for a grouping that is more likely than one group. */
static enum esp_status is_likely(const struct contest *contest, uint32_t index, bool *out, struct error *err)
{
	struct affinity_verdict verdict;
	enum esp_status status = discover_affinity_judge(&contest->affinity, &contest->list[index], &verdict, err);

	if (status == ESP_OK)
		*out = contest->list[index].count == 1 || verdict.evidence > 0;
	return status;
}

/* ---- by the cost of plans ---- */

struct race {
	double best; /* seconds   */
	uint32_t groups, index;
	bool has_begun, is_likely;
};

/* A likely grouping wins against an unlikely one; then the time counts. */
static void race_add(struct race *race, uint32_t index, double seconds, uint32_t groups, bool likely)
{
	bool is_faster = seconds * NEAR < race->best || (seconds < race->best * NEAR && groups < race->groups);

	if (race->has_begun && (likely == race->is_likely ? !is_faster : !likely))
		return;
	*race = (struct race){.best = seconds, .groups = groups, .index = index, .has_begun = true, .is_likely = likely};
}

/* The cost on the network as the grouping explains it. */
static enum esp_status cost_smoothed(const struct contest *contest, const struct matrix *seconds_per_byte,
                                     uint32_t index, uint64_t bytes, const uint32_t *order, double *out_seconds,
                                     struct error *err)
{
	struct tune_network network = *contest->network;
	struct matrix smooth = {0};
	enum esp_status status = discover_smooth_by_groups(seconds_per_byte, &contest->list[index], &smooth, err);

	network.seconds_per_byte = smooth.at;
	if (status == ESP_OK)
		status = cost_grouping(&network, contest->list[index].group_of, bytes, order, out_seconds, err);
	matrix_fini(&smooth);
	return status;
}

/* The distances with outliers clipped, in seconds per byte. */
static enum esp_status fenced_seconds(const struct contest *contest, struct matrix *out, struct error *err)
{
	enum esp_status status = matrix_copy(out, &contest->logs, err);

	for (uint32_t i = 0; i < contest->logs.size && status == ESP_OK; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(out, i, j, contest->least * exp(matrix_get(&contest->logs, i, j)));
	}
	return status;
}

static enum esp_status run_race(const struct contest *contest, const struct matrix *fenced, uint64_t bytes,
                                uint32_t *first, uint32_t *order, struct race *race, double *out_seconds,
                                struct error *err)
{
	bool is_measured = contest->network->seconds_per_byte && !contest->network->topology;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < contest->count; i++) {
		const struct grouping *grouping = &contest->list[i];
		bool likely = true;
		double seconds = 0;

		order_by_groups(grouping->group_of, grouping->nodes, grouping->count, first, order);
		if (is_measured)
			status = is_likely(contest, i, &likely, err);
		if (status == ESP_OK)
			status = is_measured ? cost_smoothed(contest, fenced, i, bytes, order, &seconds, err)
			                     : cost_grouping(contest->network, grouping->group_of, bytes, order, &seconds, err);
		if (status != ESP_OK)
			return status;
		if (out_seconds)
			out_seconds[i] = seconds;
		race_add(race, i, seconds, grouping->count, likely);
	}
	return status;
}

static enum esp_status choose_by_cost(const struct contest *contest, uint64_t bytes, uint32_t *out_best,
                                      double *out_seconds, struct error *err)
{
	uint32_t nodes = contest->network->nodes;
	uint32_t *order = calloc(nodes, sizeof(*order)), *first = calloc((size_t)nodes + 1, sizeof(*first));
	struct matrix fenced = {0};
	struct race race = {0};
	enum esp_status status = order && first ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u nodes", nodes);

	if (status == ESP_OK && contest->logs.size > 0)
		status = fenced_seconds(contest, &fenced, err);
	if (status == ESP_OK)
		status = run_race(contest, &fenced, bytes, first, order, &race, out_seconds, err);
	*out_best = race.index;
	matrix_fini(&fenced);
	free(order);
	free(first);
	return status;
}

/* ---- without bandwidths ---- */

/*
 * Of groupings that are more likely than one group, the one whose groups are separated best: near inside,
 * relative to the distance of the next group, on average over groups and not over nodes, as a plan waits for
 * its worst group. The evidence alone would choose the widest gap; with racks in rows that is the one between
 * rows, while the scarce links leave a rack.
 */
static enum esp_status choose_by_distance(const struct contest *contest, uint32_t *out_best, struct error *err)
{
	double best = -INFINITY;

	*out_best = 0;
	for (uint32_t i = 0; i < contest->count; i++) {
		const struct grouping *grouping = &contest->list[i];
		bool likely = false;
		enum esp_status status = is_likely(contest, i, &likely, err);
		double apart = status == ESP_OK ? discover_silhouette_of_groups(&contest->logs, grouping) : 0;

		if (status == ESP_OK && isnan(apart))
			status = error_set(err, ESP_ENOMEM, "no memory for %u nodes", grouping->nodes);
		if (status != ESP_OK)
			return status;
		if (!likely)
			apart = -1 - (double)grouping->count; /* the fewest groups, if none is likely */
		if (apart > best + ALIKE || (apart > best - ALIKE && grouping->count < contest->list[*out_best].count)) {
			best = apart;
			*out_best = i;
		}
	}
	return ESP_OK;
}

enum esp_status discover_choose_grouping(const struct tune_network *network, const uint32_t *const *groupings,
                                         uint32_t count, uint64_t bytes, uint32_t *out_best, double *out_seconds,
                                         struct error *err)
{
	bool by_latency = !network->topology && !network->seconds_per_byte;
	struct contest contest;
	enum esp_status status = contest_init(&contest, network, groupings, count, err);

	if (status == ESP_OK && (!by_latency || out_seconds))
		status = choose_by_cost(&contest, bytes, out_best, out_seconds, err);
	if (status == ESP_OK && by_latency)
		status = choose_by_distance(&contest, out_best, err);
	contest_fini(&contest);
	return status;
}
