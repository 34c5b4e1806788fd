/*
 * sched_sum.c - batches in which some updates are added on the way: the order is cut into updates that go to the hub
 * and groups that go through an aggregator (fabric/bundle.h), where that is earlier by the calendar.
 *
 * An aggregator is a worker of its own group. So aggregators are chosen before the cut, and a cut is taken only if each
 * lies in its group: the last updates of the order first, which always do if there is one aggregator; then drawn.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "fabric/sched_parts.h"

#define TRIAL_AGGREGATORS 4u
#define TRIALS_MOST 20u
#define TRIAL_COST 4096u           /* updates, squared, over all trials of a batch */
#define GAIN_PERCENT 95u           /* the mean time has to be at most this: a sum costs a connection and an answer */
#define WAIT_MOST (5 * NS_PER_S)   /* a sum that begins later is not worth its risk; below the gate's patience */
#define WAIT_SLACK (50 * NS_PER_MS)
#define HELD_SLACK (2 * NS_PER_S)

/* Aggregators that are tried together. */
struct trial {
	uint32_t count;
	struct bundle_aggregator aggregators[TRIAL_AGGREGATORS];
	uint32_t workers[TRIAL_AGGREGATORS];
	unsigned __int128 sum;
};

bool sched_sum_is_welcome(const struct sched *sched, uint32_t count)
{
	for (uint32_t row = 0; row < count; row++) {
		const struct ledger_update *update = &sched->ledger.updates[sched->workers[row]];

		if (update->attempts >= SCHED_ATTEMPTS || update->leaves ||
		    sched->order[row].bytes != sched->order[0].bytes)
			return false;
	}
	return sched->config.aggregates;
}

bool sched_sum_is_possible(const struct sched *sched, uint32_t count)
{
	bool has_aggregator = false;

	for (uint32_t row = 0; row < count; row++)
		has_aggregator |= sched->links[sched->workers[row]].can_aggregate;
	return has_aggregator && count >= 2 && sched_sum_is_welcome(sched, count);
}

static uint32_t worker_at(const struct sched *sched, uint32_t place)
{
	return sched->workers[sched->rows[place]];
}

/* ---- trials ---- */

/* Each aggregator is a member of its group, whose members it does not wait for all too long. */
static bool is_valid(const struct sched *sched, uint32_t places, const struct trial *trial, const struct bundle *cut)
{
	uint64_t has_own = 0;

	for (uint32_t i = 0; i < places; i++) {
		const struct bundle_update *update = &sched->bundled[i];

		if (update->group > 0 && trial->workers[update->group - 1] == worker_at(sched, i))
			has_own |= UINT64_C(1) << (update->group - 1);
	}
	for (uint32_t group = 0; group < trial->count; group++) {
		if (cut->groups[group].members > 0 && (!(has_own >> group & 1) ||
		                                       cut->groups[group].span.begin > sched->now + WAIT_MOST))
			return false;
	}
	return true;
}

static bool run(struct sched *sched, uint32_t places, const struct trial *trial, struct bundle *out)
{
	return bundle_run(sched->calendar, sched->bundled, places, trial->aggregators, trial->count, sched_hub_link(sched),
	                  BUNDLE_MEAN, out);
}

/* Takes it if it is better than the best so far; books nothing. */
static void try(struct sched *sched, uint32_t places, struct trial *trial, struct trial *best)
{
	uint64_t mark = calendar_mark(sched->calendar);
	struct bundle cut;

	if (run(sched, places, trial, &cut) && is_valid(sched, places, trial, &cut)) {
		trial->sum = cut.sum;
		if (trial->sum < best->sum)
			*best = *trial;
	}
	calendar_rollback(sched->calendar, mark);
}

static bool add_aggregator(const struct sched *sched, struct trial *trial, uint32_t place)
{
	uint32_t worker = worker_at(sched, place);

	if (!sched->links[worker].can_aggregate)
		return false;
	trial->workers[trial->count] = worker;
	trial->aggregators[trial->count++] = (struct bundle_aggregator){.host = sched->hosts[worker],
	                                                                .in = sched_link_in(sched, worker),
	                                                                .out = sched_link_out(sched, worker)};
	return true;
}

/* Places in ascending order, as groups are: each drawn from its part of the order, the last one from the end. */
static bool draw(struct sched *sched, uint32_t places, struct trial *trial)
{
	uint32_t most = places / 2 < TRIAL_AGGREGATORS ? places / 2 : TRIAL_AGGREGATORS;
	uint32_t count = 1 + (uint32_t)rng_below(&sched->rng, most);

	trial->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = places * i / count, last = places * (i + 1) / count;

		if (!add_aggregator(sched, trial, first + (uint32_t)rng_below(&sched->rng, last - first)))
			return false;
	}
	return true;
}

static uint32_t trials_of(uint32_t places)
{
	uint32_t count = TRIAL_COST / (places * places);

	return count < 1 ? 1 : count > TRIALS_MOST ? TRIALS_MOST : count;
}

/* All directly, unless a cut is clearly better. */
static void choose(struct sched *sched, uint32_t places, struct trial *best)
{
	const unsigned __int128 now = (unsigned __int128)sched->now * places;
	const unsigned __int128 never = (unsigned __int128)1 << 112;
	struct trial none = {.sum = never}, direct = {0};
	uint32_t trials = places > 1 ? trials_of(places) : 0, half = (trials + 1) / 2;

	*best = none;
	try(sched, places, &direct, &none);
	for (uint32_t i = 0; i < half && i < places; i++) {
		struct trial trial = {0};

		if (add_aggregator(sched, &trial, places - 1 - i))
			try(sched, places, &trial, best);
	}
	for (uint32_t i = half; i < trials; i++) {
		struct trial trial;

		if (draw(sched, places, &trial))
			try(sched, places, &trial, best);
	}
	if (best->count == 0 || (best->sum - now) * 100 > (none.sum - now) * GAIN_PERCENT)
		*best = direct;
}

/* ---- decisions ---- */

static void decide_direct(struct sched *sched, uint32_t place, const struct calendar_span *span, uint32_t booking)
{
	const struct order_update *order = &sched->order[sched->rows[place]];
	uint32_t worker = worker_at(sched, place);

	if (span->begin >= sched->now + sched->config.batch_ns && !order->has_waited)
		sched_put_off(sched, worker, booking);
	else
		(void)sched_decide_send(sched, worker, order->bytes, span, booking);
}

uint64_t sched_sum_wait(const struct sched *sched, uint64_t begin)
{
	uint64_t wait = begin - sched->now;

	return wait + wait / 4 + 2 * sched->config.batch_ns + WAIT_SLACK;
}

uint64_t sched_sum_join(struct sched *sched, struct sched_decision *decision, uint64_t bundle, uint32_t aggregator,
                        uint64_t members, uint64_t begin)
{
	struct sched_link *link = &sched->links[decision->worker];
	uint64_t wait = sched_sum_wait(sched, begin);

	decision->bundle = bundle ? bundle : decision->position;
	decision->aggregator = link->aggregator = link->next_hop = aggregator;
	if (decision->worker == aggregator) {
		decision->members = link->members = members;
		decision->wait_ns = wait;
		link->sums++;
	} else {
		decision->patience_ns = wait + HELD_SLACK;
	}
	return decision->bundle;
}

static void decide_member(struct sched *sched, uint32_t place, const struct bundle_group *group, uint32_t aggregator,
                          uint64_t members, uint64_t bundle)
{
	const struct bundle_update *update = &sched->bundled[place];
	const struct calendar_span whole = {update->span.begin, group->span.end};
	uint32_t worker = worker_at(sched, place);
	bool is_own = worker == aggregator;
	struct sched_decision *decision =
		sched_decide_send(sched, worker, update->bytes, &whole, is_own ? group->booking : update->booking);
	(void)sched_sum_join(sched, decision, bundle, aggregator, members, group->span.begin);
	decision->rate = sched->links[worker].granted = sched_rate_of(update->bytes, is_own ? &group->span : &update->span);
}

/* The members follow each other in the order. Returns the place behind them. */
static uint32_t decide_group(struct sched *sched, uint32_t places, uint32_t first, const struct bundle *cut,
                             const struct trial *trial)
{
	uint32_t number = sched->bundled[first].group, end = first;
	const struct bundle_group *group = &cut->groups[number - 1];
	uint64_t members = 0, bundle = 0;

	for (; end < places && sched->bundled[end].group == number; end++)
		members |= UINT64_C(1) << worker_at(sched, end);
	if (end == first + 1) { /* it is the aggregator's own update */
		decide_direct(sched, first, &group->span, group->booking);
		return end;
	}
	for (uint32_t place = first; place < end; place++) {
		decide_member(sched, place, group, trial->workers[number - 1], members, bundle);
		bundle = bundle ? bundle : sched->positions;
	}
	sched->sums++;
	sched->summed += end - first;
	return end;
}

static void decide_cut(struct sched *sched, uint32_t places, const struct bundle *cut, const struct trial *trial)
{
	for (uint32_t place = 0; place < places;) {
		const struct bundle_update *update = &sched->bundled[place];

		if (update->group > 0) {
			place = decide_group(sched, places, place, cut, trial);
			continue;
		}
		decide_direct(sched, place, &update->span, update->booking);
		place++;
	}
}

/* The order alone, without what it has booked. */
static uint32_t order(struct sched *sched, uint32_t count)
{
	uint32_t rows[LEDGER_WORKERS_MOST + 1];
	uint64_t mark = calendar_mark(sched->calendar);
	uint32_t places = sched_order(sched, count);

	calendar_rollback(sched->calendar, mark);
	sched_decide_rest(sched, count, rows);
	for (uint32_t place = 0; place < places; place++) {
		uint32_t row = rows[place + 1], worker = sched->workers[row];

		sched->rows[place] = row;
		sched->bundled[place] = (struct bundle_update){.host = sched->hosts[worker],
		                                               .out = sched_link_out(sched, worker),
		                                               .bytes = sched->order[row].bytes,
		                                               .from = sched->order[row].from};
	}
	return places;
}

void sched_sum_decide(struct sched *sched, uint32_t count)
{
	struct bundle cut;
	struct trial best;

	/* Updates that would queue up behind a link that is booked become one batch. */
	if (sched_hub_booked_until(sched) > sched->now + sched->config.batch_ns)
		return;
	uint32_t places = order(sched, count);
	if (places == 0)
		return;
	choose(sched, places, &best);
	if (run(sched, places, &best, &cut)) {
		decide_cut(sched, places, &cut, &best);
		return;
	}
	for (uint32_t place = 0; place < places; place++) /* the calendar has no room */
		sched_put_off(sched, worker_at(sched, place), CALENDAR_NONE);
}
