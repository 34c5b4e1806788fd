/*
 * ring.c - each chunk passes once around the ring to be summed, and once to be distributed. Pure.
 *
 *     owner + 1 ─▶ owner + 2 ─▶ ... ─▶ owner      the sum grows on the way
 *     owner ─▶ owner + 1 ─▶ ... ─▶ owner - 1      the result follows it
 *
 * Owners differ from chunk to chunk, so all links are busy at once and every node sends 2 (N - 1) / N of the
 * buffer: the minimum. The price is 2 (N - 1) rounds. The order of addition begins behind the owner, so owners
 * do not move.
 */
#include "plan/planner.h"

uint32_t ring_after(const struct route *route, uint32_t node)
{
	return node + 1 == route->plan->workers ? 0 : node + 1;
}

static uint32_t ring_before(const struct route *route, uint32_t node)
{
	return node == 0 ? route->plan->workers - 1 : node - 1;
}

/*
 * At any moment each link is busy with the chunk of another owner, and an allreduce's chunk passes a link
 * twice, N rounds apart. So there is no order of chunks that suits all links: each has its own, round by round.
 * Several chunks per owner make a lap, so that a link has data to carry while one of them is on its way to the
 * next node.
 */
#define LAP_SCRATCH 64u /* all chunks of a lap may be in flight: no more where they have scratch places */

uint32_t ring_lap(const struct chunks *chunks, uint32_t each)
{
	uint64_t lap = (uint64_t)(each ? each : LAP_CHUNKS) * chunks->workers, count = chunks->chunk_count;

	if (chunks->collective == PLAN_ALLREDUCE)
		return (uint32_t)(lap < count ? lap : count);
	/* Owner by owner, not in turns: all at once, or a stream that fills the links one after the other. */
	if (chunks->collective == PLAN_ALLGATHER || (chunks->collective == PLAN_REDUCE_SCATTER && count <= LAP_SCRATCH))
		return count <= lap ? (uint32_t)count : 1;
	return 1;
}

static enum esp_status ring_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	plan->lap = ring_lap(&plan->chunks, spec->lap_chunks);
	return plan_spread_owners(plan, plan->workers, err);
}

static uint32_t ring_owner(const struct route *route)
{
	uint32_t fixed = plan_route_fixed_owner(route);

	if (fixed != PLAN_NONE)
		return fixed;
	/* A single contributor starts the round itself: the way over another owner would only be longer. */
	return route->piece.from != PLAN_ALL ? route->piece.from : route->plan->owner[route->chunk];
}

/*
 * The round in which a message is sent if all chunks of the lap start at once: first the sum goes around, then
 * the result.
 */
static uint32_t ring_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	uint32_t workers = plan->workers, owner;
	(void)to;

	if (plan->chunks.collective == PLAN_ALLREDUCE) { /* called for every message of a lap, and no owner is fixed */
		owner = plan->owner[chunk];
	} else {
		struct route route = {.plan = plan, .chunk = chunk, .piece = plan_seated_piece(plan, chunk)};

		owner = ring_owner(&route);
	}
	uint32_t hops = from >= owner ? from - owner : from + workers - owner;
	if (plan->chunks.collective == PLAN_ALLGATHER)
		return hops;
	return hops == 0 ? workers - 1 : hops - 1 + nth * workers;
}

void ring_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t before = ring_before(route, node);

	if (before == route->owner || before == node)
		return; /* the sum starts here */
	plan_fold_begin(builder);
	plan_fold_from(builder, before);
	plan_fold_self(builder);
	plan_fold_end(builder);
}

static void ring_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t after = ring_after(route, node);

	if (after != route->owner)
		plan_fan_to(builder, after);
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
	.turn = ring_turn,
};
