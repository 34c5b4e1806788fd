/*
 * exchange.c - every worker sends its part to every other, and each sums all of them itself. Pure.
 *
 *     0 ─▶ 1 2 3      1 ─▶ 0 2 3      2 ─▶ 0 1 3      3 ─▶ 0 1 2
 *
 * One round for every collective: no worker waits for another's result. An allreduce costs N (N - 1) messages:
 * for tiny buffers. All add in the order of ranks, as the owner in flat does, so that both give the same bits.
 * A chunk with one contributor or one receiver is a star around that worker.
 */
#include "plan/planner.h"

/* The single worker on a side of the chunk. exchange_row() handles all-to-all, but for a job of one worker. */
static uint32_t exchange_owner(const struct route *route)
{
	if (route->piece.to != PLAN_ALL)
		return route->piece.to;
	return route->piece.from != PLAN_ALL ? route->piece.from : 0;
}

static bool exchange_row(const struct plan *plan, uint32_t node, const struct plan_piece *piece, struct plan_row *row)
{
	uint32_t workers = plan->workers;
	uint8_t have = PLAN_IN;

	if (piece->from != PLAN_ALL || piece->to != PLAN_ALL || workers == 1)
		return false;
	plan_row_fetch(row);
	if (plan->in_place) {
		/* The sum overwrites the input, and no received message proves that the input was sent. */
		have = plan_row_tmp(row);
		plan_row_copy(row, have, PLAN_IN);
	}
	/* Begins with the next worker: otherwise all would send to worker 0 first. */
	for (uint32_t i = 1; i < workers; i++)
		plan_row_send(row, have, (uint32_t)(((uint64_t)node + i) % workers));
	plan_row_fold(row, PLAN_OUT, workers);
	for (uint32_t worker = 0; worker < workers; worker++) {
		if (worker == node)
			plan_row_local(row, have);
		else
			plan_row_term(row, worker);
	}
	if (plan_collective_reduces(plan->chunks.collective))
		plan_row_update(row, PLAN_OUT);
	plan_row_deliver(row);
	return true;
}

const struct planner planner_exchange = {
	.name = "exchange",
	.summary = "each sends everything to all others, and each adds it up: one round, for tiny buffers",
	.direct = true,
	.owner = exchange_owner,
	.up = star_up,
	.down = star_up,
	.gather = star_gather,
	.spread = star_spread,
	.row = exchange_row,
};
