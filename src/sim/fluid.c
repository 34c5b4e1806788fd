/*
 * fluid.c - transfers as flows that share links max-min fairly.
 *
 * A heap says which flow ends next at the rates of this moment. All that comes and goes at one moment is solved for
 * once, at its end. Flows that end within a picosecond of each other end together: a byte takes longer on any link, and
 * what was equal but for rounding stays equal.
 */
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "sim/network_state.h"

#define TOGETHER 1e-12 /* seconds */

/* ---- the heap ---- */

static void put_at(struct network *network, struct transfer *transfer, uint32_t place)
{
	network->heap[place] = transfer;
	transfer->place = place;
}

static void sift_up(struct network *network, struct transfer *transfer, uint32_t place)
{
	for (; place > 0 && transfer->ends < network->heap[(place - 1) / 2]->ends; place = (place - 1) / 2)
		put_at(network, network->heap[(place - 1) / 2], place);
	put_at(network, transfer, place);
}

static void sift_down(struct network *network, struct transfer *transfer, uint32_t place)
{
	for (uint32_t child; (child = place * 2 + 1) < network->heap_count; place = child) {
		if (child + 1 < network->heap_count && network->heap[child + 1]->ends < network->heap[child]->ends)
			child++;
		if (transfer->ends <= network->heap[child]->ends)
			break;
		put_at(network, network->heap[child], place);
	}
	put_at(network, transfer, place);
}

static void heap_set(struct network *network, struct transfer *transfer)
{
	uint32_t place = transfer->place;

	if (place > 0 && transfer->ends < network->heap[(place - 1) / 2]->ends)
		sift_up(network, transfer, place);
	else
		sift_down(network, transfer, place);
}

static bool heap_add(struct network *network, struct transfer *transfer)
{
	if (!vec_reserve(&network->heap, &network->heap_room, (size_t)network->heap_count + 1, sizeof(struct transfer *)))
		return false;
	sift_up(network, transfer, network->heap_count++);
	return true;
}

static void heap_remove(struct network *network, struct transfer *transfer)
{
	uint32_t place = transfer->place;
	struct transfer *moved = network->heap[--network->heap_count];

	transfer->place = UINT32_MAX;
	if (moved == transfer)
		return;
	put_at(network, moved, place);
	heap_set(network, moved);
}

/* ---- time ---- */

static void tick(void *user);

static void tick_at_first_end(struct network *network)
{
	struct agenda *agenda = network->config.agenda;

	if (network->heap_count == 0 || !(network->heap[0]->ends < network->next_tick))
		return;
	network->next_tick = network->heap[0]->ends > agenda->now ? network->heap[0]->ends : agenda->now;
	sim_agenda_at(agenda, network->next_tick, tick, network);
}

/* A new rate: so much is left at this moment, and it ends then. */
static void rate_changed(void *user, struct share_flow *flow, double before)
{
	struct network *network = user;
	struct transfer *transfer = (struct transfer *)flow;
	double now = network->config.agenda->now;

	if (transfer->is_background)
		return;
	transfer->left -= before * (now - transfer->since);
	if (transfer->left < 0)
		transfer->left = 0;
	transfer->since = now;
	transfer->ends = flow->rate > 0 ? now + transfer->left / flow->rate : INFINITY;
	heap_set(network, transfer);
}

static void solve(void *user)
{
	struct network *network = user;

	network->solve_due = false;
	network->unseen = 0;
	network->solved++;
	sim_share_solve(&network->share, rate_changed, network);
	if (network->share.failed)
		network->config.agenda->failed = true;
	tick_at_first_end(network);
}

static void solve_late(void *user)
{
	struct network *network = user;

	network->solve_late = false;
	if (network->unseen > 0 && !network->solve_due)
		solve(network);
}

/* At the end of this moment; of the grain, where there is one and few flows have come or gone. */
static void solve_at_last(struct network *network)
{
	struct agenda *agenda = network->config.agenda;

	if (network->solve_due)
		return;
	if (network->config.grain > 0 && network->unseen < network->heap_count / NETWORK_FEW) {
		if (!network->solve_late)
			sim_agenda_at(agenda, agenda->now + network->config.grain, solve_late, network);
		network->solve_late = true;
		return;
	}
	network->solve_due = true;
	sim_agenda_at_last(agenda, solve, network);
}

static void end(struct transfer *transfer)
{
	struct network *network = transfer->network;
	struct agenda *agenda = network->config.agenda;

	heap_remove(network, transfer);
	sim_share_remove(&network->share, &transfer->flow);
	network->unseen++;
	sim_network_left(transfer);
	if (transfer->delay > 0)
		sim_agenda_at(agenda, agenda->now + transfer->delay, sim_network_arrived, transfer);
	else
		sim_network_arrived(transfer);
}

static void tick(void *user)
{
	struct network *network = user;
	double now = network->config.agenda->now;

	if (now == network->next_tick)
		network->next_tick = INFINITY;
	if (network->heap_count == 0 || network->heap[0]->ends > now + TOGETHER) {
		tick_at_first_end(network); /* the flow of this tick ends later by now */
		return;
	}
	while (network->heap_count > 0 && network->heap[0]->ends <= now + TOGETHER)
		end(network->heap[0]);
	solve_at_last(network);
	if (!network->solve_due)
		tick_at_first_end(network);
}

void sim_fluid_start(struct transfer *transfer)
{
	struct network *network = transfer->network;

	transfer->left = transfer->wire;
	transfer->since = network->config.agenda->now;
	transfer->ends = INFINITY;
	if (!transfer->is_background && !heap_add(network, transfer)) {
		network->config.agenda->failed = true;
		return;
	}
	sim_share_add(&network->share, &transfer->flow);
	network->unseen++;
	solve_at_last(network);
}

void sim_fluid_stop(struct transfer *transfer)
{
	sim_share_remove(&transfer->network->share, &transfer->flow);
	transfer->network->unseen++;
	solve_at_last(transfer->network);
	sim_network_put(transfer);
}

void sim_fluid_changed(struct network *network, uint32_t link)
{
	sim_share_set_capacity(&network->share, link, network_rate(network, link));
	network->unseen++;
	solve_at_last(network);
}
