/*
 * three_level.c - three levels: sum within each group, between the groups of each zone, then between the zones.
 * Pure.
 *
 *     members ─▶ master of the group ─▶ master of the zone ─▶ owner ─▶ and back the same way
 *
 * For hosts with several workers in racks: groups are hosts, zones are racks. Each chunk leaves a host once and
 * a rack once on its way up, and comes back once. The master of a zone is the master of one of its groups, the
 * owner that of one of the zones; both are spread by the longest-first partition. Members are added in rank
 * order, groups in group order, zones in zone order, wherever the masters are. Without zones every group is
 * one, and the plan is two-level's.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/partition.h"
#include "plan/planner.h"

/* ---- tables ---- */

static enum esp_status no_memory(const struct plan *plan, struct error *err)
{
	return error_set(err, ESP_ENOMEM, "no memory for the masters of %u groups", plan->group_count);
}

/* The zone of each group, and the groups sorted by zone. */
static enum esp_status read_zones(struct plan *plan, const uint32_t *zone_of, struct error *err)
{
	uint32_t groups = plan->group_count;

	plan->zone_of = calloc(groups, sizeof(*plan->zone_of));
	plan->zone_group = calloc(groups, sizeof(*plan->zone_group));
	plan->zone_first = calloc((size_t)groups + 2, sizeof(*plan->zone_first));
	if (!plan->zone_of || !plan->zone_group || !plan->zone_first)
		return no_memory(plan, err);
	for (uint32_t g = 0; g < groups; g++) {
		plan->zone_of[g] = zone_of ? zone_of[g] : g;
		if (plan->zone_of[g] >= groups)
			return error_set(err, ESP_EINVAL, "group %u is in zone %u: zones are numbered from 0 up to at most %u", g,
			                 plan->zone_of[g], groups - 1);
		if (plan->zone_of[g] + 1 > plan->zone_count)
			plan->zone_count = plan->zone_of[g] + 1;
	}
	/* Counting sort, one slot ahead, so that filling in leaves the starts in place. */
	uint32_t *next = plan->zone_first + 1;
	for (uint32_t g = 0; g < groups; g++)
		next[plan->zone_of[g] + 1]++;
	for (uint32_t z = 0; z < plan->zone_count; z++) {
		if (next[z + 1] == 0)
			return error_set(err, ESP_EINVAL, "zone %u of %u has no group", z, plan->zone_count);
		next[z + 1] += next[z];
	}
	for (uint32_t g = 0; g < groups; g++)
		plan->zone_group[next[plan->zone_of[g]]++] = g;
	return ESP_OK;
}

static uint64_t zone_size(const struct plan *plan, uint32_t zone)
{
	uint64_t size = 0;

	for (uint32_t i = plan->zone_first[zone]; i < plan->zone_first[zone + 1]; i++)
		size += plan_group_size(plan, plan->zone_group[i]);
	return size;
}

/* Owners: whole chunks to zones, in proportion to their workers. */
static enum esp_status spread_owners(struct plan *plan, uint64_t *sizes, uint64_t *weights)
{
	uint64_t count = plan->chunks.chunk_count;

	for (uint32_t z = 0; z < plan->zone_count; z++)
		weights[z] = zone_size(plan, z);
	for (uint64_t c = 0; c < count; c++)
		sizes[c] = plan_chunks_piece(&plan->chunks, c).bytes;
	return plan_partition_lpt(sizes, count, weights, plan->zone_count, plan->owner_zone);
}

/* Masters of a zone: a chunk weighs as much as its master moves for the zone, and more if the owner is in it. */
static enum esp_status spread_tops(struct plan *plan, uint32_t zone, uint64_t *sizes, uint64_t *weights)
{
	uint64_t count = plan->chunks.chunk_count;
	uint32_t first = plan->zone_first[zone], groups = plan->zone_first[zone + 1] - first;
	uint32_t *top = &plan->zone_top[zone * count];

	for (uint32_t i = 0; i < groups; i++)
		weights[i] = plan_group_size(plan, plan->zone_group[first + i]);
	for (uint64_t c = 0; c < count; c++) {
		uint64_t peers = groups - 1 + (plan->owner_zone[c] == zone ? plan->zone_count - 1 : 1);

		sizes[c] = plan_chunks_piece(&plan->chunks, c).bytes * peers;
	}
	enum esp_status status = plan_partition_lpt(sizes, count, weights, groups, top);
	for (uint64_t c = 0; status == ESP_OK && c < count; c++)
		top[c] = plan->zone_group[first + top[c]];
	return status;
}

static enum esp_status spread_local(struct plan *plan, uint32_t group, uint64_t *sizes)
{
	uint64_t count = plan->chunks.chunk_count;
	uint32_t *master = &plan->local_master[group * count], zone = plan->zone_of[group];

	for (uint64_t c = 0; c < count; c++) {
		bool is_top = plan->zone_top[zone * count + c] == group;
		uint64_t peers = plan_group_size(plan, group) - 1 +
		                 (is_top ? plan->zone_first[zone + 1] - plan->zone_first[zone] : 1);

		sizes[c] = plan_chunks_piece(&plan->chunks, c).bytes * peers;
	}
	enum esp_status status = plan_partition_lpt(sizes, count, NULL, plan_group_size(plan, group), master);
	for (uint64_t c = 0; status == ESP_OK && c < count; c++)
		master[c] = plan->member[plan->member_first[group] + master[c]];
	return status;
}

static enum esp_status spread_masters(struct plan *plan, struct error *err)
{
	uint64_t count = plan->chunks.chunk_count;
	uint64_t *sizes = calloc(count, sizeof(*sizes)), *weights = calloc(plan->group_count, sizeof(*weights));
	enum esp_status status = ESP_ENOMEM;

	plan->owner_zone = calloc(count, sizeof(*plan->owner_zone));
	plan->zone_top = calloc(count * plan->zone_count, sizeof(*plan->zone_top));
	plan->local_master = calloc(count * plan->group_count, sizeof(*plan->local_master));
	if (sizes && weights && plan->owner_zone && plan->zone_top && plan->local_master)
		status = spread_owners(plan, sizes, weights);
	for (uint32_t z = 0; status == ESP_OK && z < plan->zone_count; z++)
		status = spread_tops(plan, z, sizes, weights);
	for (uint32_t g = 0; status == ESP_OK && g < plan->group_count; g++)
		status = spread_local(plan, g, sizes);
	free(sizes);
	free(weights);
	return status == ESP_OK ? ESP_OK : no_memory(plan, err);
}

/* Which of the six rounds of an allreduce; two_level.c has the reason. */
static uint32_t three_level_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	uint64_t count = plan->chunks.chunk_count;
	uint32_t group = plan->group_of[to], zone = plan->zone_of[group];
	(void)nth;

	if (plan->group_of[from] == group)
		return plan->local_master[group * count + chunk] == to ? 0 : 5;
	if (plan->zone_of[plan->group_of[from]] == zone)
		return plan->zone_top[zone * count + chunk] == group ? 1 : 4;
	return plan->owner_zone[chunk] == zone ? 2 : 3;
}

static enum esp_status three_level_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	enum plan_collective collective = plan->chunks.collective;
	enum esp_status status = two_level_members(plan, err);

	if (status == ESP_OK)
		status = read_zones(plan, spec->zone_of, err);
	/* From one worker to one other, no other node is needed. */
	if (status != ESP_OK || collective == PLAN_GATHER || collective == PLAN_SCATTER || collective == PLAN_ALLTOALL ||
	    plan->chunks.chunk_count == 0)
		return status;
	plan->lap = plan_allreduce_lap(plan, plan->workers, spec->lap_chunks);
	return spread_masters(plan, err);
}

/* ---- the trees ---- */

/* A broadcast's chunks go through different masters, so that the root does not send everything to all. */
static bool begins_at(const struct route *route)
{
	return route->piece.from != PLAN_ALL && route->plan->chunks.collective != PLAN_BROADCAST;
}

static uint32_t group_master(const struct route *route, uint32_t group)
{
	const struct plan *plan = route->plan;
	uint32_t to = route->piece.to, from = route->piece.from;

	if (to != PLAN_ALL && plan->group_of[to] == group)
		return to;
	if (begins_at(route) && plan->group_of[from] == group)
		return from;
	return plan->local_master[group * plan->chunks.chunk_count + route->chunk];
}

static uint32_t zone_master(const struct route *route, uint32_t zone)
{
	const struct plan *plan = route->plan;
	uint32_t to = route->piece.to, from = route->piece.from;

	if (to != PLAN_ALL && plan->zone_of[plan->group_of[to]] == zone)
		return to;
	if (begins_at(route) && plan->zone_of[plan->group_of[from]] == zone)
		return from;
	return group_master(route, plan->zone_top[zone * plan->chunks.chunk_count + route->chunk]);
}

static uint32_t three_level_owner(const struct route *route)
{
	const struct plan *plan = route->plan;
	uint32_t one = route->piece.to != PLAN_ALL ? route->piece.to : route->piece.from;

	return zone_master(route, one != PLAN_ALL ? plan->zone_of[plan->group_of[one]] : plan->owner_zone[route->chunk]);
}

static uint32_t three_level_up(const struct route *route, uint32_t node)
{
	uint32_t group = route->plan->group_of[node], master = group_master(route, group);

	if (node != master)
		return master;
	uint32_t top = zone_master(route, route->plan->zone_of[group]);
	return node == top ? route->owner : top;
}

static void three_level_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	const struct plan *plan = route->plan;
	uint32_t group = plan->group_of[node], zone = plan->zone_of[group];

	if (node != group_master(route, group))
		return;
	plan_fold_begin(builder);
	for (uint32_t i = plan->member_first[group]; i < plan->member_first[group + 1]; i++) {
		if (plan->member[i] == node)
			plan_fold_self(builder);
		else
			plan_fold_from(builder, plan->member[i]);
	}
	plan_fold_end(builder);
	if (node != zone_master(route, zone))
		return;
	plan_fold_begin(builder);
	for (uint32_t i = plan->zone_first[zone]; i < plan->zone_first[zone + 1]; i++) {
		if (plan->zone_group[i] == group)
			plan_fold_self(builder);
		else
			plan_fold_from(builder, group_master(route, plan->zone_group[i]));
	}
	plan_fold_end(builder);
	if (node != route->owner)
		return;
	plan_fold_begin(builder);
	for (uint32_t z = 0; z < plan->zone_count; z++) {
		if (z == zone)
			plan_fold_self(builder);
		else
			plan_fold_from(builder, zone_master(route, z));
	}
	plan_fold_end(builder);
}

static void three_level_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	const struct plan *plan = route->plan;
	uint32_t group = plan->group_of[node], zone = plan->zone_of[group];

	/* Other zones first: their data has more hops to go. */
	for (uint32_t i = 1; node == route->owner && i < plan->zone_count; i++)
		plan_fan_to(builder, zone_master(route, (zone + i) % plan->zone_count));
	if (node != group_master(route, group))
		return;
	for (uint32_t i = plan->zone_first[zone]; node == zone_master(route, zone) && i < plan->zone_first[zone + 1]; i++) {
		if (plan->zone_group[i] != group)
			plan_fan_to(builder, group_master(route, plan->zone_group[i]));
	}
	for (uint32_t i = plan->member_first[group]; i < plan->member_first[group + 1]; i++) {
		if (plan->member[i] != node)
			plan_fan_to(builder, plan->member[i]);
	}
}

const struct planner planner_three_level = {
	.name = "three-level",
	.summary = "sum within each group, between the groups of each zone, then between zones: hosts in racks",
	.needs_groups = true,
	.direct = true,
	.prepare = three_level_prepare,
	.owner = three_level_owner,
	.up = three_level_up,
	.down = three_level_up,
	.gather = three_level_gather,
	.spread = three_level_spread,
	.turn = three_level_turn,
};
