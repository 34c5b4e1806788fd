/*
 * halving_doubling.c - recursive halving of the sum, recursive doubling of the result. Pure.
 *
 * In the halving, neighbours in bit 0 exchange halves of the buffer and add, then neighbours in bit 1 quarters,
 * and so on; the doubling runs backwards. For one chunk, that is a binomial tree whose top is the chunk's
 * owner:
 *
 *     owner 0:   1 ─▶ 0    3 ─▶ 2    5 ─▶ 4    7 ─▶ 6      bit 0
 *                2 ─▶ 0              6 ─▶ 4                bit 1
 *                4 ─▶ 0                                    bit 2
 *
 * Low bits come first, so the large exchanges are between near ranks. The order of additions does not depend on
 * the owner, so neither do the bits of the result.
 */
#include "plan/planner.h"
#include "plan/planner/hypercube.h"

/*
 * Neighbours exchange one half of the chunks in the halving and the other half in the doubling, which is the
 * last round for bit 0. With messages numbered chunk by chunk, a message of the halving would have to wait
 * until some of the doubling are consumed, as soon as there are more of them than credits.
 */
static enum esp_status halving_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	struct hypercube cube = hypercube_of(plan->workers);

	plan->lap = plan_allreduce_lap(plan, cube.vertices, spec->lap_chunks);
	enum esp_status status = plan_spread_owners(plan, cube.vertices, err);

	/* Chunks are spread over vertices; the table holds ranks. */
	for (uint64_t c = 0; status == ESP_OK && plan->owner && c < plan->chunks.chunk_count; c++)
		plan->owner[c] = hypercube_rank(cube, plan->owner[c]);
	return status;
}

uint32_t hypercube_owner(const struct route *route)
{
	struct hypercube cube = hypercube_of(route->plan->workers);
	uint32_t owner = plan_route_fixed_owner(route);

	if (owner == PLAN_NONE)
		owner = route->plan->owner ? route->plan->owner[route->chunk] : 0;
	return hypercube_rank(cube, hypercube_vertex(cube, owner)); /* a guest's chunk is its host's */
}

/* The bit in which this vertex sends its sum to another: the lowest that differs from the owner's. */
static uint32_t leaving_bit(struct hypercube cube, uint32_t vertex, uint32_t owner)
{
	uint32_t differ = vertex ^ hypercube_vertex(cube, owner);

	return differ ? differ & -differ : cube.vertices;
}

uint32_t hypercube_up(const struct route *route, uint32_t node)
{
	struct hypercube cube = hypercube_of(route->plan->workers);

	if (hypercube_is_guest(cube, node))
		return node - 1;
	uint32_t vertex = hypercube_vertex(cube, node);
	return hypercube_rank(cube, vertex ^ leaving_bit(cube, vertex, route->owner));
}

void hypercube_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	struct hypercube cube = hypercube_of(route->plan->workers);

	if (hypercube_is_guest(cube, node))
		return;
	if (hypercube_has_guest(cube, node))
		plan_fold_pair(builder, node, node + 1);
	uint32_t vertex = hypercube_vertex(cube, node), leaving = leaving_bit(cube, vertex, route->owner);
	for (uint32_t bit = 1; bit < leaving; bit *= 2)
		plan_fold_pair(builder, node, hypercube_rank(cube, vertex ^ bit));
}

void hypercube_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	struct hypercube cube = hypercube_of(route->plan->workers);

	if (hypercube_is_guest(cube, node))
		return;
	uint32_t vertex = hypercube_vertex(cube, node), leaving = leaving_bit(cube, vertex, route->owner);
	for (uint32_t bit = leaving / 2; bit >= 1; bit /= 2)
		plan_fan_to(builder, hypercube_rank(cube, vertex ^ bit));
	if (hypercube_has_guest(cube, node))
		plan_fan_to(builder, node + 1);
}

/*
 * The round in which a message is sent if all chunks of the lap start at once: guests, halving from bit 0 up,
 * doubling back, guests.
 */
static uint32_t halving_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	struct hypercube cube = hypercube_of(plan->workers);
	uint32_t rounds = (uint32_t)__builtin_ctz(cube.vertices),
	    owner = hypercube_rank(cube, hypercube_vertex(cube, plan->owner[chunk]));
	(void)nth;

	if (hypercube_is_guest(cube, from))
		return 0;
	if (hypercube_is_guest(cube, to))
		return 2 * rounds + 1;
	uint32_t vertex = hypercube_vertex(cube, from), bit = vertex ^ hypercube_vertex(cube, to);
	uint32_t round = (uint32_t)__builtin_ctz(bit);
	return bit == leaving_bit(cube, vertex, owner) ? 1 + round : 2 * rounds - round;
}

const struct planner planner_halving_doubling = {
	.name = "halving-doubling",
	.summary = "halve the buffer and add, log N times, then double it back: least bytes, 2 log N rounds",
	.movable = true,
	.prepare = halving_prepare,
	.owner = hypercube_owner,
	.up = hypercube_up,
	.down = hypercube_up,
	.gather = hypercube_gather,
	.spread = hypercube_spread,
	.turn = halving_turn,
};
