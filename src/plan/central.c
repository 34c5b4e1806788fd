/*
 * central.c - one server sums everything: the parameter server of old.
 *
 * The server is a node of its own (dedicated), or one of the workers (the root). It is
 * the bottleneck, and the baseline that everything else is measured against.
 */
#include <stdlib.h>

#include "plan/planner.h"

static enum esp_status central_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	if (!spec->dedicated)
		return ESP_OK;
	plan->nodes = plan->workers + 1;
	if (!plan->group_of)
		return ESP_OK;
	uint32_t *group_of = realloc(plan->group_of, plan->nodes * sizeof(*group_of));
	if (!group_of)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", plan->nodes);
	plan->group_of = group_of;
	group_of[plan->workers] = group_of[plan->chunks.root]; /* the server stands with the root */
	return ESP_OK;
}

static uint32_t central_owner(const struct route *route)
{
	return route->plan->nodes > route->plan->workers ? route->plan->workers : route->plan->chunks.root;
}

const struct planner planner_central = {
	.name = "central",
	.summary = "one server sums everything and hands it back: two rounds, all bytes through one node",
	.prepare = central_prepare,
	.owner = central_owner,
	.up = star_up,
	.down = star_up,
	.gather = star_gather,
	.spread = star_spread,
};
