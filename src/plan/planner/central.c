/*
 * central.c - one server, or a few, sum everything: a central parameter server. Pure.
 *
 * The server is one of the workers (the root), or there are extra nodes that take the chunks in turn. They are
 * the bottleneck, and the baseline to which other planners are compared.
 */
#include "plan/planner.h"

static enum esp_status central_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	enum esp_status status = plan_add_nodes(plan, spec->servers, err);

	plan->servers = spec->servers;
	/* the first is in the root's group */
	for (uint32_t i = 0; status == ESP_OK && plan->group_of && i < spec->servers; i++)
		plan->group_of[plan->workers + i] = (plan->group_of[plan->chunks.root] + i) % plan->group_count;
	return status;
}

static uint32_t central_owner(const struct route *route)
{
	const struct plan *plan = route->plan;

	return plan->servers ? plan->workers + (uint32_t)(route->chunk % plan->servers)
	                     : plan_seat(plan, plan->chunks.root);
}

const struct planner planner_central = {
	.name = "central",
	.summary = "one server, or a few, sum everything and hand it back: two rounds, all bytes through them",
	.prepare = central_prepare,
	.owner = central_owner,
	.up = star_up,
	.down = star_up,
	.gather = star_gather,
	.spread = star_spread,
};
