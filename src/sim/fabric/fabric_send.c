/*
 * fabric_send.c - updates on their way to the hub or to an aggregator, and models down their trees.
 */
#include <assert.h>
#include <string.h>

#include "sim/fabric/fabric_world_state.h"

static void add_values(uint64_t to[FABRIC_VALUES], const uint64_t from[FABRIC_VALUES])
{
	for (uint32_t i = 0; i < FABRIC_VALUES; i++)
		to[i] += from[i];
}

/* ---- updates ---- */

static bool is_aggregator(const struct fabric_worker *of)
{
	return of->decision.members != 0;
}

/* A member's update is at its aggregator. If that one has gone on without it, the gate has broken it. */
static void arrive(struct fabric_world *world, uint32_t worker)
{
	const struct fabric_worker *of = &world->workers[worker];
	struct fabric_worker *at = &world->workers[of->decision.aggregator];

	if (at->is_dead || at->doing != FABRIC_WAITS || at->epoch != of->epoch ||
	    at->decision.bundle != of->decision.bundle || !(at->decision.members >> worker & 1))
		return;
	at->got |= UINT64_C(1) << worker;
	add_values(at->sum, of->values);
}

/* Of a chain: it streams when all have offered. */
static void send_to_aggregator(struct fabric_world *world, uint32_t worker)
{
	const struct sched_decision *decision = &world->workers[worker].decision;
	const uint32_t links[] = {fabric_out(world, worker), fabric_in(world, decision->aggregator)};

	if (decision->is_chain || fabric_host(world, decision->aggregator) == fabric_host(world, worker))
		arrive(world, worker);
	else
		fabric_flows_start(&world->flows, links, 2, world->config->bytes, (double)decision->rate,
		                   fabric_cookie(FABRIC_TO_AGGREGATOR, worker));
}

static void add_link(uint32_t *links, uint32_t *count, uint32_t link)
{
	for (uint32_t i = 0; i < *count; i++) {
		if (links[i] == link)
			return;
	}
	assert(*count < FABRIC_PATH_MOST);
	links[(*count)++] = link;
}

/* Bytes that pass the last of so many links, two a hop, until the transfer is through: chunks are under way before. */
static uint64_t bytes_of(const struct fabric_world *world, uint32_t links)
{
	return world->config->bytes + (links > 2 ? (links / 2 - 1) * world->config->chunk_bytes : 0);
}

/* The worker's own update, and all that comes to it: by next hops, as the decisions say. */
static void stream_of(struct fabric_world *world, uint64_t members, uint32_t worker, uint32_t depth,
                      uint64_t out[FABRIC_VALUES])
{
	const struct fabric_worker *of = &world->workers[worker];
	uint32_t inputs = 0;

	add_values(out, of->values);
	for (uint32_t from = 0; from < world->config->workers && depth < world->config->workers; from++) {
		if (from == worker || !(members >> from & 1) || world->workers[from].decision.next_hop != worker)
			continue;
		inputs++;
		stream_of(world, members, from, depth + 1, out);
	}
	if (inputs != of->decision.inputs && world->config->mutant != FABRIC_NO_WAIT)
		fabric_fail(world, "worker %u has %u streams, and the decision says %u", worker, inputs, of->decision.inputs);
}

/* The gate has taken the sum of a chain: all of its links are busy at once. */
static void start_chain(struct fabric_world *world, uint32_t aggregator)
{
	struct fabric_worker *of = &world->workers[aggregator];
	uint32_t links[FABRIC_PATH_MOST], count = 0;

	memset(of->sum, 0, sizeof(of->sum));
	stream_of(world, of->got, aggregator, 0, of->sum);
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		uint32_t next = world->workers[worker].decision.next_hop;

		if (!(of->got >> worker & 1) || (next != SCHED_HUB && fabric_host(world, next) == fabric_host(world, worker)))
			continue;
		add_link(links, &count, fabric_out(world, worker));
		add_link(links, &count, next == SCHED_HUB ? fabric_hub_in(world) : fabric_in(world, next));
	}
	fabric_flows_start(&world->flows, links, count, bytes_of(world, count), (double)of->decision.rate,
	                   fabric_cookie(FABRIC_TO_HUB, aggregator));
}

/* A chain that lacks a member does not stream: the aggregator's own update goes by itself. */
static void leave_chain(struct fabric_world *world, struct fabric_worker *of)
{
	if (!of->decision.is_chain || !is_aggregator(of) || of->got == of->decision.members ||
	    world->config->mutant == FABRIC_NO_WAIT)
		return;
	of->got = UINT64_C(1) << of->decision.worker;
	of->decision.inputs = 0;
	memcpy(of->sum, of->values, sizeof(of->sum));
}

static struct gate_offer offer_of(const struct fabric_world *world, uint32_t worker)
{
	const struct fabric_worker *of = &world->workers[worker];
	uint64_t got = world->config->mutant == FABRIC_NO_WAIT ? of->decision.members : of->got;

	return (struct gate_offer){.worker = worker,
	                           .number = of->number,
	                           .computed_from = of->computed_from,
	                           .epoch = of->epoch,
	                           .position = of->decision.position,
	                           .patience_ns = of->decision.patience_ns,
	                           .bundle = of->decision.bundle,
	                           .aggregator = of->decision.bundle > 0 ? of->decision.aggregator : GATE_ALONE,
	                           .members = is_aggregator(of) ? got : 0,
	                           .at_ns = world->now};
}

/* Where the monitor may be wrong the scheduler is told how long a transfer took; not of chains, whose links are many. */
static void time_flow(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];

	if (!of->decision.is_chain && world->config->wrong_percent > 0)
		of->took_ns = world->now - of->flow_ns;
}

/* A member offers its own update before it sends it to its aggregator. */
void fabric_send_offer(struct fabric_world *world, uint32_t worker)
{
	struct fabric_worker *of = &world->workers[worker];
	const uint32_t links[] = {fabric_out(world, worker), fabric_hub_in(world)};

	leave_chain(world, of);
	of->flow_ns = world->now;
	of->took_ns = 0;
	const struct gate_offer offer = offer_of(world, worker);
	struct gate_result result;
	enum esp_status status = gate_offer(&world->gate, &offer, &result);

	of->doing = FABRIC_SENDS;
	if (status == ESP_ETIMEOUT && result.why == GATE_BROKEN)
		fabric_again(world, worker);
	else if (status == ESP_ETIMEOUT)
		fabric_end_update(world, worker,
		                  result.why == GATE_LATE_OFFER ? LEDGER_LATE_AT_OFFER : LEDGER_LATE_AT_HUB, result.delay);
	else if (status != ESP_OK)
		fabric_fail(world, "the gate refuses update %lu of worker %u", (unsigned long)of->number, worker);
	else if (offer.bundle > 0 && !is_aggregator(of))
		send_to_aggregator(world, worker);
	else if (of->decision.is_chain)
		start_chain(world, worker);
	else
		fabric_flows_start(&world->flows, links, 2, world->config->bytes, (double)of->decision.rate,
		                   fabric_cookie(FABRIC_TO_HUB, worker));
}

/* When the worker's update is to be offered: that of an aggregator with all members there, or at the latest. */
static uint64_t offer_time(const struct fabric_world *world, const struct fabric_worker *of)
{
	bool has_all = of->got == of->decision.members;

	if (world->config->mutant == FABRIC_NO_WAIT)
		has_all |= (of->got & (of->got - 1)) != 0;
	if (!is_aggregator(of) || has_all || of->wait_until_ns < of->start_ns)
		return of->start_ns;
	return of->wait_until_ns;
}

/* ---- models ---- */

static bool comes_from(const struct fabric_world *world, uint32_t worker, uint32_t root)
{
	uint32_t steps = 0;

	for (; worker != root && steps < world->config->workers; steps++) {
		worker = world->workers[worker].model.source;
		if (worker == SCHED_HUB)
			return false;
	}
	return worker == root;
}

static void open_tree(struct fabric_world *world, uint32_t root)
{
	struct fabric_tree *tree = world->trees;

	while (tree->is_open)
		tree++; /* one for each worker that waits */
	assert(tree < world->trees + FABRIC_WORKERS_MOST);
	*tree = (struct fabric_tree){.is_open = true, .start_ns = world->now + world->workers[root].model.start_ns,
	                             .rate = world->workers[root].model.rate};
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		if (world->workers[worker].has_model_decision && comes_from(world, worker, root))
			tree->workers |= UINT64_C(1) << worker;
	}
}

void fabric_send_trees(struct fabric_world *world)
{
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		if (world->workers[worker].has_model_decision && world->workers[worker].model.source == SCHED_HUB)
			open_tree(world, worker);
	}
	for (uint32_t worker = 0; worker < world->config->workers; worker++)
		world->workers[worker].has_model_decision = false;
}

static bool has_worker(const struct fabric_tree *tree, uint32_t worker)
{
	return tree->workers >> worker & 1;
}

static void start_tree(struct fabric_world *world, struct fabric_tree *tree)
{
	uint32_t links[FABRIC_PATH_MOST], count = 0;

	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		uint32_t from = world->workers[worker].model.source;

		if (!has_worker(tree, worker))
			continue;
		world->workers[worker].incoming_from = world->gate.version;
		if (world->config->learner)
			world->config->learner->send(world->config->learner->user, worker);
		if (from != SCHED_HUB && fabric_host(world, from) == fabric_host(world, worker))
			continue;
		add_link(links, &count, from == SCHED_HUB ? fabric_hub_out(world) : fabric_out(world, from));
		add_link(links, &count, fabric_in(world, worker));
	}
	fabric_flows_start(&world->flows, links, count, bytes_of(world, count), (double)tree->rate,
	                   fabric_cookie(FABRIC_TREE, (uint32_t)(tree - world->trees)));
	tree->is_sending = true;
}

static void end_tree(struct fabric_world *world, struct fabric_tree *tree)
{
	tree->is_open = false;
	world->result->models++;
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		if (has_worker(tree, worker))
			fabric_deliver_model(world, worker);
	}
}

/* ---- time ---- */

void fabric_send_due(struct fabric_world *world)
{
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		const struct fabric_worker *of = &world->workers[worker];

		if (!of->is_dead && of->doing == FABRIC_WAITS && offer_time(world, of) <= world->now)
			fabric_send_offer(world, worker);
	}
	for (uint32_t i = 0; i < FABRIC_WORKERS_MOST; i++) {
		if (world->trees[i].is_open && !world->trees[i].is_sending && world->trees[i].start_ns <= world->now)
			start_tree(world, &world->trees[i]);
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t fabric_send_next(const struct fabric_world *world)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		const struct fabric_worker *of = &world->workers[worker];

		if (!of->is_dead && of->doing == FABRIC_WAITS)
			next = least(next, offer_time(world, of));
	}
	for (uint32_t i = 0; i < FABRIC_WORKERS_MOST; i++) {
		if (world->trees[i].is_open && !world->trees[i].is_sending)
			next = least(next, world->trees[i].start_ns);
	}
	return next;
}

void fabric_send_ended(struct fabric_world *world, uint64_t cookie)
{
	uint32_t number = (uint32_t)cookie;

	switch ((enum fabric_kind)(cookie >> 32)) {
	case FABRIC_TO_HUB:
		time_flow(world, number);
		if (!gate_whole(&world->gate, number, world->now))
			fabric_fail(world, "the gate does not know of the update that worker %u has sent", number);
		break;
	case FABRIC_TO_AGGREGATOR:
		time_flow(world, number);
		arrive(world, number);
		break;
	case FABRIC_TREE:
		end_tree(world, &world->trees[number]);
		break;
	case FABRIC_MODEL:
		world->result->models++;
		fabric_deliver_model(world, number);
		break;
	}
}

/* ---- losses ---- */

void fabric_send_forget(struct fabric_world *world, uint32_t worker)
{
	fabric_flows_stop(&world->flows, fabric_cookie(FABRIC_TO_HUB, worker));
	fabric_flows_stop(&world->flows, fabric_cookie(FABRIC_TO_AGGREGATOR, worker));
}

static void lose_tree(struct fabric_world *world, struct fabric_tree *tree)
{
	tree->is_open = false;
	fabric_flows_stop(&world->flows, fabric_cookie(FABRIC_TREE, (uint32_t)(tree - world->trees)));
	for (uint32_t worker = 0; worker < world->config->workers; worker++) {
		if (!has_worker(tree, worker))
			continue;
		world->workers[worker].is_asking = false;
		fabric_ask_model(world, worker);
	}
}

/* A chain ends with any of its workers: its aggregator takes its offer back, and announces its update again. */
static void lose_chains(struct fabric_world *world, uint32_t worker)
{
	struct gate_result result;

	for (uint32_t other = 0; other < world->config->workers; other++) {
		const struct fabric_worker *of = &world->workers[other];

		if (other == worker || of->is_dead || of->doing != FABRIC_SENDS || !of->decision.is_chain ||
		    !is_aggregator(of) || !(of->got >> worker & 1))
			continue;
		if (gate_gone(&world->gate, other, &result))
			fabric_again(world, other);
	}
}

void fabric_send_lost(struct fabric_world *world, uint32_t worker)
{
	lose_chains(world, worker);
	if (world->workers[worker].doing == FABRIC_SENDS)
		fabric_send_forget(world, worker);
	fabric_flows_stop(&world->flows, fabric_cookie(FABRIC_MODEL, worker));
	for (uint32_t i = 0; i < FABRIC_WORKERS_MOST; i++) {
		if (world->trees[i].is_open && has_worker(&world->trees[i], worker))
			lose_tree(world, &world->trees[i]);
	}
}
