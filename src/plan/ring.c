/*
 * ring.c - each chunk runs once around the ring to be summed, and once to be handed out.
 *
 *     owner + 1 ─▶ owner + 2 ─▶ ... ─▶ owner      the sum grows along the way
 *     owner ─▶ owner + 1 ─▶ ... ─▶ owner - 1      the result follows it
 *
 * Owners differ from chunk to chunk, so all links are busy at once and every node sends
 * 2 (N - 1) / N of the buffer: the least there is. The price is 2 (N - 1) rounds. The
 * order of addition begins behind the owner, so owners do not move.
 */
#include "plan/planner.h"

static uint32_t ring_after(const struct route *route, uint32_t node)
{
	return node + 1 == route->plan->workers ? 0 : node + 1;
}

static uint32_t ring_before(const struct route *route, uint32_t node)
{
	return node == 0 ? route->plan->workers - 1 : node - 1;
}

static enum esp_status ring_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	(void)spec;
	return plan_spread_owners(plan, plan->workers, err);
}

static uint32_t ring_owner(const struct route *route)
{
	uint32_t fixed = route_fixed_owner(route);

	if (fixed != PLAN_NONE)
		return fixed;
	/* A lone contributor starts the round itself: a detour to another owner would only be longer. */
	return route->piece.from != PLAN_ALL ? route->piece.from : route->plan->owner[route->chunk];
}

static void ring_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t before = ring_before(route, node);

	if (before == route->owner || before == node)
		return; /* the sum starts here */
	fold_begin(builder);
	fold_from(builder, before);
	fold_self(builder);
	fold_end(builder);
}

static void ring_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t after = ring_after(route, node);

	if (after != route->owner)
		fan_to(builder, after);
}

const struct planner planner_ring = {
	.name = "ring",
	.summary = "each chunk once around to be summed, once around to be handed out: least bytes, most rounds",
	.prepare = ring_prepare,
	.owner = ring_owner,
	.up = ring_after,
	.down = ring_before,
	.gather = ring_gather,
	.spread = ring_spread,
};
