#include "fabric/gate.h"

#include <assert.h>

#define NO_WORKER UINT32_MAX

const char *gate_why_name(uint8_t why)
{
	static const char *const names[GATE_WHYS] = {[GATE_APPLIED] = "applied",
	                                             [GATE_LATE_OFFER] = "late offer",
	                                             [GATE_LATE] = "late",
	                                             [GATE_GONE] = "worker gone"};

	assert(why < GATE_WHYS);
	return names[why];
}

void gate_init(struct gate *gate, uint32_t workers, uint32_t bound)
{
	assert(workers >= 1 && workers <= GATE_WORKERS_MOST && bound >= 1);
	*gate = (struct gate){.workers = workers, .bound = bound, .next = 1};
}

static uint64_t delay_now(const struct gate *gate, const struct gate_offer *offer)
{
	return gate->version + 1 - offer->computed_from;
}

static bool has_place(const struct gate *gate, const struct gate_update *update)
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
static void pass(struct gate *gate, uint64_t position)
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
static void give_up(struct gate *gate, uint64_t position)
{
	if (position == gate->next)
		pass(gate, position);
	else if (position > gate->next && position - gate->next < 64)
		gate->given_up |= UINT64_C(1) << (position - gate->next);
}

enum esp_status gate_offer(struct gate *gate, const struct gate_offer *offer, struct gate_result *out)
{
	assert(offer->worker < gate->workers);
	struct gate_update *update = &gate->updates[offer->worker];

	if (offer->number <= gate->last[offer->worker] || offer->computed_from > gate->version ||
	    update->state != GATE_IDLE)
		return ESP_ECORRUPT;
	gate->last[offer->worker] = offer->number;
	see_epoch(gate, offer);
	if (delay_now(gate, offer) > gate->bound) {
		if (offer->position > 0 && offer->epoch == gate->epoch)
			give_up(gate, offer->position);
		*out =
			(struct gate_result){offer->worker, offer->number, GATE_LATE_OFFER, gate->version, delay_now(gate, offer)};
		gate->count[GATE_LATE_OFFER]++;
		return ESP_ETIMEOUT;
	}
	*update = (struct gate_update){.offer = *offer, .state = GATE_SENDING};
	if (update->offer.patience_ns > GATE_PATIENCE_MOST)
		update->offer.patience_ns = GATE_PATIENCE_MOST;
	return ESP_OK;
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

/* ---- turns ---- */

/* The update leaves the gate: if its turn came, or it would not wait for it, the position behind it is next. */
static void leave(struct gate *gate, uint32_t worker, uint8_t why, struct gate_result *out)
{
	struct gate_update *update = &gate->updates[worker];

	*out = (struct gate_result){worker, update->offer.number, why, gate->version, delay_now(gate, &update->offer)};
	if (has_place(gate, update) && why == GATE_GONE)
		give_up(gate, update->offer.position);
	else if (has_place(gate, update) && update->offer.position >= gate->next)
		pass(gate, update->offer.position);
	gate->count[why]++;
	update->state = GATE_IDLE;
}

bool gate_gone(struct gate *gate, uint32_t worker, struct gate_result *out)
{
	assert(worker < gate->workers);
	struct gate_update *update = &gate->updates[worker];

	if (update->state != GATE_SENDING)
		return false;
	leave(gate, worker, GATE_GONE, out);
	return true;
}

/* Has the update waited for earlier positions as long as it may? */
static bool is_impatient(const struct gate_update *update, uint64_t now)
{
	return now - update->whole_ns >= update->offer.patience_ns;
}

/* May it be applied now? */
static bool has_turn(const struct gate *gate, const struct gate_update *update, uint64_t now)
{
	if (update->state != GATE_WHOLE)
		return false;
	return !has_place(gate, update) || update->offer.position <= gate->next || is_impatient(update, now);
}

/* Updates without a place first: they were whole before they could be ordered. Then by position. */
static uint32_t first_in_turn(const struct gate *gate, uint64_t now)
{
	uint32_t first = NO_WORKER;
	uint64_t position = UINT64_MAX;

	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		const struct gate_update *update = &gate->updates[worker];
		uint64_t own = has_place(gate, update) ? update->offer.position : 0;

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

		if (update->state == GATE_WHOLE && has_place(gate, update) &&
		    has_place(gate, &gate->updates[worker]) && update->offer.position < gate->updates[worker].offer.position)
			worker = other;
	}
	return worker;
}

bool gate_next(struct gate *gate, uint64_t now, struct gate_result *out)
{
	uint32_t worker = first_in_turn(gate, now);

	if (worker == NO_WORKER)
		return false;
	worker = first_whole_before(gate, worker);
	const struct gate_update *update = &gate->updates[worker];
	if (delay_now(gate, &update->offer) > gate->bound) {
		leave(gate, worker, GATE_LATE, out);
		return true;
	}
	gate->waited += now > update->whole_ns;
	gate->overtaken += has_place(gate, update) && update->offer.position < gate->next;
	gate->version++;
	leave(gate, worker, GATE_APPLIED, out);
	out->delay--;  /* leave() counts one more, as for an update that is still to come */
	assert(out->delay >= 1 && out->delay <= gate->bound);
	return true;
}

uint64_t gate_due(const struct gate *gate)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t worker = 0; worker < gate->workers; worker++) {
		const struct gate_update *update = &gate->updates[worker];

		if (update->state == GATE_WHOLE && update->whole_ns + update->offer.patience_ns < due)
			due = update->whole_ns + update->offer.patience_ns;
	}
	return due;
}
