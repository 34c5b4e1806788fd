/*
 * sched_chain.c - batches whose updates are added by streaming chains (fabric/chain.h): each host adds its own to the
 * stream that comes to it and passes it on, and the last one, the aggregator, gives the sum to the hub.
 */
#include "fabric/sched_parts.h"

bool sched_chain_is_possible(const struct sched *sched, uint32_t count)
{
	for (uint32_t row = 0; row < count; row++) {
		if (!sched->links[sched->workers[row]].can_aggregate)
			return false;
	}
	return sched->batch && sched_sum_is_welcome(sched, count);
}

/* The order's rows say what becomes of each update. */
static void run(struct sched *sched, uint32_t count)
{
	const struct batch_config config = {.calendar = sched->calendar,
	                                    .hub = sched_hub_link(sched),
	                                    .way = BATCH_CHAINS,
	                                    .order_flags = sched->config.order_flags,
	                                    .now = sched->now,
	                                    .next_batch = sched->now + sched->config.batch_ns,
	                                    .rng = &sched->rng};

	for (uint32_t row = 0; row < count; row++) {
		uint32_t worker = sched->workers[row];
		const struct order_update *order = &sched->order[row];

		sched->streamed[row] = (struct batch_update){.host = sched->hosts[worker],
		                                             .in = sched_link_in(sched, worker),
		                                             .out = sched_link_out(sched, worker),
		                                             .bytes = order->bytes,
		                                             .from = order->from,
		                                             .deadline = order->deadline,
		                                             .has_waited = order->has_waited};
	}
	batch_run(&config, sched->streamed, count, sched->batch);
	for (uint32_t row = 0; row < count; row++) {
		sched->order[row].fate = sched->streamed[row].fate;
		sched->order[row].place = sched->streamed[row].place;
		sched->order[row].deadline = sched->streamed[row].deadline;
	}
}

static uint64_t members_of(const struct sched *sched, const uint32_t *rows, const struct batch_group *group)
{
	uint64_t members = 0;

	for (uint32_t i = 0; i < group->members; i++)
		members |= UINT64_C(1) << sched->workers[rows[group->first + i]];
	return members;
}

/* All of a chain begins and ends at the same time, at one rate. */
static void decide_group(struct sched *sched, const uint32_t *rows, const struct batch_group *group)
{
	uint64_t members = members_of(sched, rows, group), bundle = 0;
	uint32_t aggregator = sched->workers[group->carrier];

	for (uint32_t place = group->first; place < group->first + group->members; place++) {
		const struct batch_update *update = &sched->streamed[rows[place]];
		uint32_t worker = sched->workers[rows[place]];
		struct sched_decision *decision = sched_decide_send(sched, worker, update->bytes, &group->span,
		                                                    worker == aggregator ? group->booking : CALENDAR_NONE);

		if (group->members == 1)
			return;
		bundle = sched_sum_join(sched, decision, bundle, aggregator, members, group->span.begin);
		decision->is_chain = true;
		decision->next_hop = update->next == BATCH_HUB ? SCHED_HUB : sched->workers[update->next];
		decision->inputs = update->inputs;
		decision->wait_ns = sched_sum_wait(sched, group->span.begin);
		sched->links[worker].next_hop = decision->next_hop;
	}
	sched->sums++;
	sched->summed += group->members;
}

void sched_chain_decide(struct sched *sched, uint32_t count)
{
	uint32_t rows[LEDGER_WORKERS_MOST + 1];

	run(sched, count);
	sched_decide_rest(sched, count, rows);
	for (uint32_t i = 0; i < sched->batch->groups; i++)
		decide_group(sched, rows, &sched->batch->group[i]);
}
