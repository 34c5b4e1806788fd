/*
 * gate_sum.c - sums of several workers' updates at the gate: held, joined, applied or broken together.
 */
#include <assert.h>

#include "fabric/gate_parts.h"

static uint64_t bit(uint32_t worker)
{
	return UINT64_C(1) << worker;
}

bool gate_sum_is_good(const struct gate *gate, const struct gate_offer *offer)
{
	if (offer->bundle == 0)
		return offer->members == 0;
	if (!gate->takes_sums || offer->position == 0 || offer->aggregator >= gate->workers)
		return false;
	if (offer->aggregator != offer->worker)
		return offer->members == 0;
	return (offer->members & bit(offer->worker)) && (gate->workers == 64 || offer->members >> gate->workers == 0);
}

/* ---- ends of members ---- */

/* A member ends; gate_next() tells it. */
static void settle(struct gate *gate, uint32_t worker, uint8_t why, uint64_t version, uint64_t delay)
{
	struct gate_update *update = &gate->updates[worker];
	struct gate_result unused;

	gate_leave(gate, worker, why, &unused);
	update->state = GATE_SETTLED;
	update->why = why;
	update->version = version;
	update->delay = delay;
}

static void settle_broken(struct gate *gate, uint32_t worker)
{
	settle(gate, worker, GATE_BROKEN, gate->version, gate_delay_now(gate, &gate->updates[worker].offer));
}

bool gate_sum_tell(struct gate *gate, struct gate_result *out)
{
	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		struct gate_update *update = &gate->updates[worker];

		if (update->state != GATE_SETTLED)
			continue;
		update->state = GATE_IDLE;
		*out = (struct gate_result){worker, update->offer.number, update->why, update->version, update->delay, 0};
		return true;
	}
	return false;
}

/* ---- updates that are held ---- */

static bool is_of(const struct gate_update *update, const struct gate_offer *sum)
{
	return update->offer.aggregator == sum->worker && update->offer.bundle == sum->bundle &&
	       update->offer.epoch == sum->epoch;
}

void gate_sum_break_held(struct gate *gate, uint32_t aggregator, const struct gate_offer *offer)
{
	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		const struct gate_update *update = &gate->updates[worker];

		if (update->state != GATE_HELD || update->offer.aggregator != aggregator ||
		    (offer && offer->members & bit(worker) && is_of(update, offer)))
			continue;
		settle_broken(gate, worker);
	}
}

void gate_sum_break_impatient(struct gate *gate, uint64_t now)
{
	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		const struct gate_update *update = &gate->updates[worker];

		if (update->state == GATE_HELD && now >= update->whole_ns &&
		    now - update->whole_ns >= update->offer.patience_ns)
			settle_broken(gate, worker);
	}
}

/* ---- sums ---- */

/* By position; each is applied after those before it. Returns how many. */
static uint32_t list_members(const struct gate *gate, uint64_t members, uint32_t out[GATE_WORKERS_MOST])
{
	uint32_t count = 0;

	for (; members; members &= members - 1) {
		uint32_t worker = (uint32_t)__builtin_ctzll(members), at = count++;

		for (; at > 0 && gate->updates[out[at - 1]].offer.position > gate->updates[worker].offer.position; at--)
			out[at] = out[at - 1];
		out[at] = worker;
	}
	return count;
}

/* Of those that are there, as many as would be too late if all were applied now, as a bit set. */
static uint64_t late_members(const struct gate *gate, uint64_t members)
{
	uint32_t list[GATE_WORKERS_MOST], count = list_members(gate, members, list);
	uint64_t late = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (gate_delay_now(gate, &gate->updates[list[i]].offer) + i > gate->bound)
			late |= bit(list[i]);
	}
	return late;
}

/* The whole sum is dropped: late members for good, the others may be offered again. */
static void drop_sum(struct gate *gate, uint32_t aggregator, uint64_t members, uint64_t late, struct gate_result *out)
{
	for (uint64_t rest = members & ~bit(aggregator); rest; rest &= rest - 1) {
		uint32_t worker = (uint32_t)__builtin_ctzll(rest);
		uint64_t delay = gate_delay_now(gate, &gate->updates[worker].offer);

		settle(gate, worker, late & bit(worker) ? GATE_LATE : GATE_BROKEN, gate->version, delay);
	}
	gate_leave(gate, aggregator, late & bit(aggregator) ? GATE_LATE : GATE_BROKEN, out);
}

static uint64_t present_members(const struct gate *gate, const struct gate_offer *sum)
{
	uint64_t present = bit(sum->worker);

	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		const struct gate_update *update = &gate->updates[worker];

		if (sum->members & bit(worker) && update->state == GATE_HELD && is_of(update, sum))
			present |= bit(worker);
	}
	return present;
}

enum esp_status gate_sum_offer(struct gate *gate, uint32_t aggregator, struct gate_result *out)
{
	struct gate_update *sum = &gate->updates[aggregator];
	uint64_t members = sum->offer.members, present = present_members(gate, &sum->offer);
	uint64_t late = late_members(gate, present);

	if (present != members || late) {
		drop_sum(gate, aggregator, present, late, out);
		return ESP_ETIMEOUT;
	}
	for (uint64_t rest = members; rest; rest &= rest - 1) {
		struct gate_update *update = &gate->updates[__builtin_ctzll(rest)];

		if (update != sum)
			update->state = GATE_JOINED;
		if (update->offer.position < sum->first)
			sum->first = update->offer.position;
	}
	return ESP_OK;
}

void gate_sum_break(struct gate *gate, uint32_t aggregator)
{
	for (uint64_t rest = gate->updates[aggregator].offer.members & ~bit(aggregator); rest; rest &= rest - 1)
		settle_broken(gate, (uint32_t)__builtin_ctzll(rest));
}

static void apply_member(struct gate *gate, uint32_t worker, uint32_t aggregator, struct gate_result *out)
{
	const struct gate_offer *offer = &gate->updates[worker].offer;
	uint64_t version = ++gate->version, delay = version - offer->computed_from;

	assert(delay >= 1 && delay <= gate->bound);
	if (worker != aggregator) {
		settle(gate, worker, GATE_APPLIED, version, delay);
		return;
	}
	gate_leave(gate, worker, GATE_APPLIED, out);
	out->delay = delay;
}

void gate_sum_turn(struct gate *gate, uint32_t aggregator, uint64_t now, struct gate_result *out)
{
	struct gate_update *sum = &gate->updates[aggregator];
	uint32_t list[GATE_WORKERS_MOST], count = list_members(gate, sum->offer.members, list);
	uint64_t late = late_members(gate, sum->offer.members);

	assert(count > 0);
	if (late) {
		drop_sum(gate, aggregator, sum->offer.members, late, out);
		return;
	}
	gate->waited += now > sum->whole_ns;
	gate->overtaken += gate_has_place(gate, sum) && sum->first < gate->next;
	gate->sums += count > 1;
	for (uint32_t i = 0; i < count; i++)
		apply_member(gate, list[i], aggregator, out);
	out->count = count;
}
