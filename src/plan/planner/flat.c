/*
 * flat.c - every node serves its share of the chunks: a sharded, colocated parameter server. Pure.
 *
 *     all ─▶ owner of the chunk ─▶ all
 *
 * Two rounds and the least bytes, but every pair of nodes exchanges data, whatever the network.
 */
#include "plan/planner.h"

static enum esp_status flat_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	(void)spec;
	/*
	 * With fewer chunks in flight than owners, all would send to a few while the others are idle. There are no
	 * scratch places.
	 */
	if (plan->chunks.collective == PLAN_ALLREDUCE)
		plan->abreast = plan->workers;
	return plan_spread_owners(plan, plan->workers, err);
}

static uint32_t flat_owner(const struct route *route)
{
	uint32_t fixed = plan_route_fixed_owner(route);

	return fixed != PLAN_NONE ? fixed : route->plan->owner[route->chunk];
}

const struct planner planner_flat = {
	.name = "flat",
	.summary = "each node serves its share of the chunks to all: two rounds, traffic between all pairs",
	.direct = true,
	.movable = true,
	.prepare = flat_prepare,
	.owner = flat_owner,
	.up = star_up,
	.down = star_up,
	.gather = star_gather,
	.spread = star_spread,
};
