/*
 * hub.c - a hub in each group, and exchange between the hubs: PHub's racks. Pure.
 *
 *     workers ─▶ hub of their group
 *     hubs ─▶ hub that owns the chunk ─▶ hubs
 *     hub ─▶ workers of its group
 *
 * Two-level with an extra node as the master of each group: the same trees and the same order of addition. A
 * hub moves the data of its whole group, so it needs the links for that; a worker moves each byte once each
 * way.
 */
#include "plan/planner.h"

static enum esp_status hub_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	enum esp_status status = plan_add_nodes(plan, plan->group_count, err);

	(void)spec;
	plan->servers = plan->group_count;
	for (uint32_t group = 0; status == ESP_OK && group < plan->group_count; group++)
		plan->group_of[plan->workers + group] = group;
	if (status == ESP_OK)
		status = two_level_members(plan, err);
	return status == ESP_OK ? plan_spread_owners(plan, plan->group_count, err) : status;
}

static uint32_t hub_owner(const struct route *route)
{
	const struct plan *plan = route->plan;
	uint32_t from = route->piece.from, to = route->piece.to;

	if (from != PLAN_ALL && to != PLAN_ALL)
		return to;
	if (from != PLAN_ALL || to != PLAN_ALL)
		return plan->workers + plan->group_of[from != PLAN_ALL ? from : to];
	return plan->workers + plan->owner[route->chunk];
}

static uint32_t hub_up(const struct route *route, uint32_t node)
{
	if (route->owner < route->plan->workers)
		return route->owner; /* from one worker to one other */
	return two_level_up(route, node);
}

const struct planner planner_hub = {
	.name = "hub",
	.summary = "a hub in each group sums it, the hubs sum each other: four rounds, all of a group through its hub",
	.needs_groups = true,
	.has_extra = true,
	.direct = true,
	.prepare = hub_prepare,
	.owner = hub_owner,
	.up = hub_up,
	.down = hub_up,
	.gather = two_level_gather,
	.spread = two_level_spread,
};
