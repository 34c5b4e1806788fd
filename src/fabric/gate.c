#include "fabric/gate_parts.h"

#include <assert.h>
#include <stddef.h>

#define NO_WORKER UINT32_MAX

const char *gate_why_name(uint8_t why)
{
	static const char *const names[GATE_WHYS] = {[GATE_APPLIED] = "applied",
	                                             [GATE_LATE_OFFER] = "late offer",
	                                             [GATE_LATE] = "late",
	                                             [GATE_GONE] = "worker gone",
	                                             [GATE_BROKEN] = "sum broken"};

	assert(why < GATE_WHYS);
	return names[why];
}

void gate_init(struct gate *gate, uint32_t workers, uint32_t bound)
{
	assert(workers >= 1 && workers <= GATE_WORKERS_MOST && bound >= 1);
	*gate = (struct gate){.workers = workers, .bound = bound, .next = 1};
}

void gate_take_sums(struct gate *gate)
{
	gate->takes_sums = true;
}

uint64_t gate_delay_now(const struct gate *gate, const struct gate_offer *offer)
{
	return gate->version + 1 - offer->computed_from;
}

bool gate_has_place(const struct gate *gate, const struct gate_update *update)
{
	return update->state != GATE_IDLE && update->offer.position > 0 && update->offer.epoch == gate->epoch;
}

/* ---- offers ---- */

/* A new life of a scheduler counts anew; updates that an earlier one has ordered are applied when they are whole. */
static void see_epoch(struct gate *gate, const struct gate_offer *offer)
{
	if (offer->position == 0 || offer->epoch <= gate->epoch)
		return;
	gate->epoch = offer->epoch;
	gate->next = 1;
	gate->given_up = 0;
}

/* The turn of a position and of all before it has passed. */
void gate_pass(struct gate *gate, uint64_t position)
{
	uint64_t passed = position + 1 - gate->next;

	assert(position >= gate->next);
	gate->next = position + 1;
	gate->given_up = passed < 64 ? gate->given_up >> passed : 0;
	while (gate->given_up & 1) {
		gate->given_up >>= 1;
		gate->next++;
	}
}

/* This position does not come; those before it still may. */
void gate_give_up(struct gate *gate, uint64_t position)
{
	if (position == gate->next)
		gate_pass(gate, position);
	else if (position > gate->next && position - gate->next < 64)
		gate->given_up |= UINT64_C(1) << (position - gate->next);
}

enum esp_status gate_offer(struct gate *gate, const struct gate_offer *offer, struct gate_result *out)
{
	assert(offer->worker < gate->workers);
	struct gate_update *update = &gate->updates[offer->worker];

	if (offer->number <= gate->last[offer->worker] || offer->computed_from > gate->version ||
	    update->state != GATE_IDLE || !gate_sum_is_good(gate, offer))
		return ESP_ECORRUPT;
	gate_sum_break_held(gate, offer->worker, offer);
	gate->last[offer->worker] = offer->number;
	see_epoch(gate, offer);
	if (gate_delay_now(gate, offer) > gate->bound) {
		gate_sum_break_held(gate, offer->worker, NULL);
		if (offer->position > 0 && offer->epoch == gate->epoch)
			gate_give_up(gate, offer->position);
		*out = (struct gate_result){
			offer->worker, offer->number, GATE_LATE_OFFER, gate->version, gate_delay_now(gate, offer), 1};
		gate->count[GATE_LATE_OFFER]++;
		return ESP_ETIMEOUT;
	}
	*update = (struct gate_update){
		.offer = *offer, .state = GATE_SENDING, .first = offer->position, .whole_ns = offer->at_ns};
	if (update->offer.patience_ns > GATE_PATIENCE_MOST)
		update->offer.patience_ns = GATE_PATIENCE_MOST;
	if (offer->bundle > 0 && offer->aggregator != offer->worker)
		update->state = GATE_HELD;
	return offer->members ? gate_sum_offer(gate, offer->worker, out) : ESP_OK;
}

bool gate_whole(struct gate *gate, uint32_t worker, uint64_t now)
{
	assert(worker < gate->workers);
	struct gate_update *update = &gate->updates[worker];

	if (update->state != GATE_SENDING)
		return false;
	update->state = GATE_WHOLE;
	update->whole_ns = now;
	return true;
}

bool gate_spoil(struct gate *gate, uint32_t worker)
{
	assert(worker < gate->workers);
	struct gate_update *update = &gate->updates[worker];

	if (update->state != GATE_SENDING)
		return false;
	if (update->offer.members && !update->is_spoiled)
		gate_sum_break(gate, worker);
	if (gate_has_place(gate, update))
		gate_give_up(gate, update->offer.position);
	update->offer.members = 0;
	update->offer.position = 0; /* it waits for none, and none for it */
	update->is_spoiled = true;
	return true;
}

/* ---- turns ---- */

/* If its turn came, or it would not wait for it, the position behind it is next. */
void gate_leave(struct gate *gate, uint32_t worker, uint8_t why, struct gate_result *out)
{
	struct gate_update *update = &gate->updates[worker];
	bool had_turn = why == GATE_APPLIED || (why == GATE_LATE && update->state == GATE_WHOLE);

	*out = (struct gate_result){
		worker, update->offer.number, why, gate->version, gate_delay_now(gate, &update->offer), 1};
	if (gate_has_place(gate, update) && !had_turn)
		gate_give_up(gate, update->offer.position);
	else if (gate_has_place(gate, update) && update->offer.position >= gate->next)
		gate_pass(gate, update->offer.position);
	gate->count[why]++;
	update->state = GATE_IDLE;
}

bool gate_gone(struct gate *gate, uint32_t worker, struct gate_result *out)
{
	assert(worker < gate->workers);
	struct gate_update *update = &gate->updates[worker];

	gate_sum_break_held(gate, worker, NULL);
	if (update->state != GATE_SENDING && update->state != GATE_HELD)
		return false;
	if (update->offer.members && update->state == GATE_SENDING)
		gate_sum_break(gate, worker);
	gate_leave(gate, worker, GATE_GONE, out);
	return true;
}

/* Has the update waited for earlier positions as long as it may? */
static bool is_impatient(const struct gate_update *update, uint64_t now)
{
	return now >= update->whole_ns && now - update->whole_ns >= update->offer.patience_ns;
}

/* May it be applied now? */
static bool has_turn(const struct gate *gate, const struct gate_update *update, uint64_t now)
{
	if (update->state != GATE_WHOLE)
		return false;
	return !gate_has_place(gate, update) || update->first <= gate->next || is_impatient(update, now);
}

/* Updates without a place first: they were whole before they could be ordered. Then by position. */
static uint32_t first_in_turn(const struct gate *gate, uint64_t now)
{
	uint32_t first = NO_WORKER;
	uint64_t position = UINT64_MAX;

	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		const struct gate_update *update = &gate->updates[worker];
		uint64_t own = gate_has_place(gate, update) ? update->first : 0;

		if (has_turn(gate, update, now) && (first == NO_WORKER || own < position)) {
			first = worker;
			position = own;
		}
	}
	return first;
}

/* Is an earlier position whole, and waits for a still earlier one? It goes first. */
static uint32_t first_whole_before(const struct gate *gate, uint32_t worker)
{
	for (uint32_t other = 0; other < gate->workers; other++) {
		const struct gate_update *update = &gate->updates[other];

		if (update->state == GATE_WHOLE && gate_has_place(gate, update) &&
		    gate_has_place(gate, &gate->updates[worker]) && update->first < gate->updates[worker].first)
			worker = other;
	}
	return worker;
}

bool gate_next(struct gate *gate, uint64_t now, struct gate_result *out)
{
	gate_sum_break_impatient(gate, now);
	if (gate_sum_tell(gate, out))
		return true;
	uint32_t worker = first_in_turn(gate, now);

	if (worker == NO_WORKER)
		return false;
	worker = first_whole_before(gate, worker);
	const struct gate_update *update = &gate->updates[worker];
	if (update->offer.members) {
		gate_sum_turn(gate, worker, now, out);
		return true;
	}
	if (update->is_spoiled || gate_delay_now(gate, &update->offer) > gate->bound) {
		gate_leave(gate, worker, update->is_spoiled ? GATE_BROKEN : GATE_LATE, out);
		return true;
	}
	gate->waited += now > update->whole_ns;
	gate->overtaken += gate_has_place(gate, update) && update->offer.position < gate->next;
	gate->version++;
	gate_leave(gate, worker, GATE_APPLIED, out);
	out->delay--;  /* gate_leave() counts one more, as for an update that is still to come */
	assert(out->delay >= 1 && out->delay <= gate->bound);
	return true;
}

uint64_t gate_due(const struct gate *gate)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		const struct gate_update *update = &gate->updates[worker];

		if (update->state == GATE_SETTLED)
			return 0;
		if ((update->state == GATE_WHOLE || update->state == GATE_HELD) &&
		    update->whole_ns + update->offer.patience_ns < due)
			due = update->whole_ns + update->offer.patience_ns;
	}
	return due;
}
