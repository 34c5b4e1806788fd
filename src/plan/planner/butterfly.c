/*
 * butterfly.c - recursive doubling: in round b every node exchanges its partial sum with its neighbour in bit
 * b, and adds. log N rounds, but log N times the bytes: for small buffers. Pure.
 *
 *     0 ◀─▶ 1   2 ◀─▶ 3        bit 0
 *     0 ◀─▶ 2   1 ◀─▶ 3        bit 1
 *
 * No node owns a chunk: all compute the same sum in the same order (lower ranks left), so all have the same
 * bits. A partial sum that is being sent must not be overwritten by the next one, and no received message
 * proves that it was sent; so each round's sum has its own place. Collectives other than allreduce and barrier
 * have one source or one target per chunk; for them the doubling is a binomial tree over the same hypercube.
 */
#include "plan/planner.h"
#include "plan/planner/hypercube.h"

static uint8_t butterfly_fold(struct plan_row *row, uint8_t target, uint8_t have, uint32_t self, uint32_t other)
{
	plan_row_fold(row, target, 2);
	if (other < self)
		plan_row_term(row, other);
	plan_row_local(row, have);
	if (other > self)
		plan_row_term(row, other);
	return target;
}

static void guest_row(struct plan_row *row, uint32_t node)
{
	plan_row_fetch(row);
	plan_row_send(row, PLAN_IN, node - 1);
	plan_row_recv(row, PLAN_OUT, node - 1);
	plan_row_deliver(row);
}

static bool butterfly_row(const struct plan *plan, uint32_t node, const struct plan_piece *piece, struct plan_row *row)
{
	struct hypercube cube = hypercube_of(plan->workers);

	if (piece->from != PLAN_ALL || piece->to != PLAN_ALL || plan->workers == 1)
		return false;
	if (hypercube_is_guest(cube, node)) {
		guest_row(row, node);
		return true;
	}
	uint32_t vertex = hypercube_vertex(cube, node);
	uint8_t have = PLAN_IN;

	plan_row_fetch(row);
	if (hypercube_has_guest(cube, node)) {
		have = butterfly_fold(row, plan_row_tmp(row), have, node, node + 1);
	} else if (plan->in_place) {
		have = plan_row_tmp(row); /* the copy is sent, as the output overwrites the input */
		plan_row_copy(row, have, PLAN_IN);
	}
	for (uint32_t bit = 1; bit < cube.vertices; bit *= 2) {
		uint32_t other = hypercube_rank(cube, vertex ^ bit);
		uint8_t target = bit * 2 < cube.vertices ? plan_row_tmp(row) : PLAN_OUT;

		plan_row_send(row, have, other);
		have = butterfly_fold(row, target, have, node, other);
	}
	if (plan_collective_reduces(plan->chunks.collective))
		plan_row_update(row, PLAN_OUT);
	if (hypercube_has_guest(cube, node))
		plan_row_send(row, PLAN_OUT, node + 1);
	plan_row_deliver(row);
	return true;
}

const struct planner planner_butterfly = {
	.name = "butterfly",
	.summary = "each exchanges everything with a neighbour and adds, log N times: for small buffers",
	.owner = hypercube_owner,
	.up = hypercube_up,
	.down = hypercube_up,
	.gather = hypercube_gather,
	.spread = hypercube_spread,
	.row = butterfly_row,
};
