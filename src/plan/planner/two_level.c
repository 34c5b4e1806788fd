/*
 * two_level.c - PLink's two-level hierarchical aggregation: sum within each group, then between the groups.
 * Pure.
 *
 *     members ─▶ local master (one per group and chunk)
 *     local masters ─▶ global master (one of them) ─▶ local masters
 *     local master ─▶ members
 *
 * Four rounds for any N, and only 2 (groups - 1) copies of each chunk pass between groups. Masters are spread
 * by the longest-first partition: global masters over groups in proportion to group size, local masters over
 * the members of each group by the bytes that a master moves. A caller may give a table of masters instead
 * (masters.h). Members are added in rank order, groups in group order, wherever the masters are.
 */
#include <stdlib.h>

#include "plan/masters.h"
#include "plan/partition.h"
#include "plan/planner.h"

enum esp_status two_level_members(struct plan *plan, struct error *err)
{
	plan->member = malloc(plan->workers * sizeof(*plan->member));
	plan->member_first = calloc(plan->group_count + 2, sizeof(*plan->member_first));
	if (!plan->member || !plan->member_first)
		return error_set(err, ESP_ENOMEM, "no memory for %u groups", plan->group_count);
	/* Counting sort, one slot ahead, so that filling in leaves the starts in place. */
	uint32_t *next = plan->member_first + 1;
	for (uint32_t i = 0; i < plan->workers; i++) {
		if (plan->group_of[i] + 1 < plan->group_count)
			next[plan->group_of[i] + 1]++;
	}
	for (uint32_t g = 1; g < plan->group_count; g++)
		next[g] += next[g - 1];
	for (uint32_t i = 0; i < plan->workers; i++)
		plan->member[next[plan->group_of[i]]++] = i;
	return ESP_OK;
}

/* Global masters: whole chunks to groups, in proportion to size. */
static enum esp_status spread_global(struct plan *plan, uint64_t *sizes, uint64_t *weights)
{
	uint64_t count = plan->chunks.chunk_count;

	for (uint32_t g = 0; g < plan->group_count; g++)
		weights[g] = plan_group_size(plan, g);
	for (uint64_t c = 0; c < count; c++)
		sizes[c] = plan_chunks_piece(&plan->chunks, c).bytes;
	return plan_partition_lpt(sizes, count, weights, plan->group_count, plan->global_group);
}

/*
 * Local masters: a chunk weighs as much as its master moves, and an eighth of a message for the update of a
 * global master. So global masters are assigned first, evenly.
 */
static enum esp_status spread_local(struct plan *plan, uint32_t group, uint64_t *sizes)
{
	uint64_t count = plan->chunks.chunk_count;
	uint32_t *master = &plan->local_master[group * count];

	for (uint64_t c = 0; c < count; c++) {
		bool is_global = plan->global_group[c] == group;
		uint64_t peers = plan_group_size(plan, group) - 1 + (is_global ? plan->group_count - 1 : 1);
		uint64_t bytes = plan_chunks_piece(&plan->chunks, c).bytes;

		sizes[c] = bytes * peers + (is_global ? (bytes + 7) / 8 : 0);
	}
	enum esp_status status = plan_partition_lpt(sizes, count, NULL, plan_group_size(plan, group), master);
	for (uint64_t c = 0; status == ESP_OK && c < count; c++)
		master[c] = plan->member[plan->member_first[group] + master[c]];
	return status;
}

static enum esp_status spread_masters(struct plan *plan, struct error *err)
{
	uint64_t count = plan->chunks.chunk_count;
	uint64_t *sizes = calloc(count, sizeof(*sizes));
	uint64_t *weights = malloc(plan->group_count * sizeof(*weights));
	enum esp_status status = ESP_ENOMEM;

	plan->global_group = calloc(count, sizeof(*plan->global_group));
	plan->local_master = calloc(count * plan->group_count, sizeof(*plan->local_master));
	if (sizes && weights && plan->global_group && plan->local_master)
		status = spread_global(plan, sizes, weights);
	for (uint32_t g = 0; status == ESP_OK && g < plan->group_count; g++)
		status = spread_local(plan, g, sizes);
	free(sizes);
	free(weights);
	return status == ESP_OK ? ESP_OK
	                        : error_set(err, status, "cannot spread %llu chunks over %u groups",
	                                    (unsigned long long)count, plan->group_count);
}

/* The given masters: chunk after chunk, slot after slot. */
static enum esp_status use_masters(struct plan *plan, const struct plan_masters *masters, struct error *err)
{
	uint64_t count = plan->chunks.chunk_count;

	if (!plan_masters_fit(masters, plan->group_of, plan->workers, plan->group_count))
		return error_set(err, ESP_EINVAL, "the masters are those of other groups");
	plan->global_group = calloc(count, sizeof(*plan->global_group));
	plan->local_master = calloc(count * plan->group_count, sizeof(*plan->local_master));
	if (!plan->global_group || !plan->local_master)
		return error_set(err, ESP_ENOMEM, "no memory for the masters of %llu chunks", (unsigned long long)count);
	for (uint64_t c = 0; c < count; c++)
		plan->global_group[c] = masters->global_group[c % masters->slots];
	for (uint32_t g = 0; g < plan->group_count; g++) {
		for (uint64_t c = 0; c < count; c++)
			plan->local_master[g * count + c] = plan_masters_local(masters, g, (uint32_t)(c % masters->slots));
	}
	return ESP_OK;
}

/*
 * Which of the four rounds of an allreduce. A member sends another one terms of chunks on their way up, and
 * sums of chunks on their way down, which have passed the other groups. With messages numbered chunk by chunk,
 * terms would wait for sums of earlier chunks: no more chunks than credits would be under way, and masters
 * would idle, the more groups there are the more of them.
 */
static uint32_t two_level_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	uint64_t count = plan->chunks.chunk_count;
	uint32_t group = plan->group_of[to];
	(void)nth;

	if (plan->group_of[from] != group)
		return plan->global_group[chunk] == group ? 1 : 2;
	return plan->local_master[group * count + chunk] == to ? 0 : 3;
}

static enum esp_status two_level_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	enum plan_collective collective = plan->chunks.collective;
	enum esp_status status = two_level_members(plan, err);

	/* From one worker to one other, no other node is needed. */
	if (status != ESP_OK || collective == PLAN_GATHER || collective == PLAN_SCATTER || collective == PLAN_ALLTOALL ||
	    plan->chunks.chunk_count == 0)
		return status;
	plan->lap = plan_allreduce_lap(plan, plan->workers, spec->lap_chunks);
	return spec->masters ? use_masters(plan, spec->masters, err) : spread_masters(plan, err);
}

static uint32_t master_of(const struct route *route, uint32_t group)
{
	const struct plan *plan = route->plan;
	uint32_t to = route->piece.to, from = route->piece.from;

	if (plan->servers)
		return plan->workers + group; /* its hub */
	if (to != PLAN_ALL && plan->group_of[to] == group)
		return to;
	if (from != PLAN_ALL && plan->group_of[from] == group && plan->chunks.collective != PLAN_BROADCAST)
		return from;
	return plan->local_master[group * plan->chunks.chunk_count + route->chunk];
}

static uint32_t two_level_owner(const struct route *route)
{
	const struct plan *plan = route->plan;
	uint32_t one = route->piece.to != PLAN_ALL ? route->piece.to : route->piece.from;

	return master_of(route, one != PLAN_ALL ? plan->group_of[one] : plan->global_group[route->chunk]);
}

uint32_t two_level_up(const struct route *route, uint32_t node)
{
	uint32_t master = master_of(route, route->plan->group_of[node]);

	return node == master ? route->owner : master;
}

void two_level_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	const struct plan *plan = route->plan;
	uint32_t group = plan->group_of[node];

	if (node != master_of(route, group))
		return;
	plan_fold_begin(builder);
	for (uint32_t i = plan->member_first[group]; i < plan->member_first[group + 1]; i++) {
		if (plan->member[i] == node)
			plan_fold_self(builder);
		else
			plan_fold_from(builder, plan->member[i]);
	}
	plan_fold_end(builder);
	if (node != route->owner)
		return;
	plan_fold_begin(builder);
	for (uint32_t g = 0; g < plan->group_count; g++) {
		if (g == group)
			plan_fold_self(builder);
		else
			plan_fold_from(builder, master_of(route, g));
	}
	plan_fold_end(builder);
}

void two_level_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	const struct plan *plan = route->plan;
	uint32_t group = plan->group_of[node];

	/* Other groups first: their data has two more hops to go. */
	for (uint32_t i = 1; node == route->owner && i < plan->group_count; i++)
		plan_fan_to(builder, master_of(route, (group + i) % plan->group_count));
	if (node != master_of(route, group))
		return;
	for (uint32_t i = plan->member_first[group]; i < plan->member_first[group + 1]; i++) {
		if (plan->member[i] != node)
			plan_fan_to(builder, plan->member[i]);
	}
}

const struct planner planner_two_level = {
	.name = "two-level",
	.summary = "sum within each group, then between groups: four rounds, least traffic between groups",
	.needs_groups = true,
	.direct = true,
	.prepare = two_level_prepare,
	.owner = two_level_owner,
	.up = two_level_up,
	.down = two_level_up,
	.gather = two_level_gather,
	.spread = two_level_spread,
	.turn = two_level_turn,
};
