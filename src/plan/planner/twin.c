/*
 * twin.c - two hubs, each with a star of every other worker, that exchange their sums. Pure.
 *
 *     0 ◀── 2 4 6      1 ◀── 3 5 7       each hub sums its star
 *     0 ◀─────────────▶ 1                both add both sums, the even workers' first
 *     0 ──▶ 2 4 6      1 ──▶ 3 5 7
 *
 * As few messages as one star, 2 (N - 1), but no worker has more than about half of them: for small buffers,
 * where every message costs CPU time of its sender. Every other worker, and not the first half and the second,
 * because processes that are started one after the other tend to be assigned to cores in turn. Chunks with one
 * source or one target travel as in central.
 */
#include "plan/planner.h"

#define HUBS 2u

/* The sum of a hub's star, in the order of ranks. */
static uint8_t sum_star(struct plan_row *row, const struct plan *plan, uint32_t hub)
{
	uint32_t members = (plan->workers - hub + HUBS - 1) / HUBS;
	uint8_t have = plan_row_tmp(row);

	if (members == 1) {
		plan_row_copy(row, have, PLAN_IN);
		return have;
	}
	plan_row_fold(row, have, members);
	plan_row_local(row, PLAN_IN);
	for (uint32_t worker = hub + HUBS; worker < plan->workers; worker += HUBS)
		plan_row_term(row, worker);
	return have;
}

static void hub_row(const struct plan *plan, uint32_t hub, struct plan_row *row)
{
	uint32_t other = 1 - hub;
	uint8_t have = PLAN_IN;

	/* The sum that is sent to the other hub must not be overwritten by the sum of both. */
	if (plan->workers > hub + HUBS || plan->in_place)
		have = sum_star(row, plan, hub);
	plan_row_send(row, have, other);
	plan_row_fold(row, PLAN_OUT, HUBS);
	if (other < hub)
		plan_row_term(row, other);
	plan_row_local(row, have);
	if (other > hub)
		plan_row_term(row, other);
	if (plan_collective_reduces(plan->chunks.collective))
		plan_row_update(row, PLAN_OUT);
	for (uint32_t worker = hub + HUBS; worker < plan->workers; worker += HUBS)
		plan_row_send(row, PLAN_OUT, worker);
}

static bool twin_row(const struct plan *plan, uint32_t node, const struct plan_piece *piece, struct plan_row *row)
{
	if (piece->from != PLAN_ALL || piece->to != PLAN_ALL || plan->workers == 1)
		return false;
	plan_row_fetch(row);
	if (node < HUBS) {
		hub_row(plan, node, row);
	} else {
		plan_row_send(row, PLAN_IN, node % HUBS);
		plan_row_recv(row, PLAN_OUT, node % HUBS);
	}
	plan_row_deliver(row);
	return true;
}

static uint32_t twin_owner(const struct route *route)
{
	return plan_seat(route->plan, route->plan->chunks.root);
}

const struct planner planner_twin = {
	.name = "twin",
	.summary = "two hubs sum every other worker's part and exchange: as few messages as central, spread over two",
	.owner = twin_owner,
	.up = star_up,
	.down = star_up,
	.gather = star_gather,
	.spread = star_spread,
	.row = twin_row,
};
