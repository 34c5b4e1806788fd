#include "fabric/order.h"

#include <assert.h>
#include <string.h>

#define NO_UPDATE UINT32_MAX
#define UNDECIDED UINT8_MAX

/* A batch that is being ordered. */
struct batch {
	struct calendar *calendar;
	struct order_update *updates;
	uint32_t count;
	uint32_t sent;  /* places that are taken */
};

int64_t order_deadline(uint64_t computed_from, uint32_t delay_bound, uint64_t version)
{
	int64_t behind = (int64_t)(version - computed_from);

	return (int64_t)delay_bound - behind;
}

static uint64_t end_of(const struct batch *batch, const struct order_update *update)
{
	return calendar_fit(batch->calendar, &update->path, update->from, update->bytes);
}

/* ---- deadlines ---- */

/*
 * due[m]: undecided updates whose deadline is at most m places after those that are taken. Deadlines beyond the batch's
 * size bind no update.
 */
static void count_due(const struct batch *batch, uint32_t due[ORDER_UPDATES_MOST + 1])
{
	memset(due, 0, (batch->count + 1) * sizeof(due[0]));
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct order_update *update = &batch->updates[i];
		int64_t within = update->deadline - batch->sent;

		assert(update->fate != UNDECIDED || within >= 1);
		if (update->fate == UNDECIDED && within <= batch->count)
			due[within]++;
	}
	for (uint32_t m = 1; m <= batch->count; m++)
		due[m] += due[m - 1];
}

/* The least m for which at least m + more updates are due within the next m places; 0: none. */
static uint32_t least_full(const struct batch *batch, uint32_t more)
{
	uint32_t due[ORDER_UPDATES_MOST + 1];

	count_due(batch, due);
	for (uint32_t m = 1; m <= batch->count; m++) {
		if (due[m] >= m + more)
			return m;
	}
	return 0;
}

static bool is_due(const struct batch *batch, const struct order_update *update, uint32_t places)
{
	return update->fate == UNDECIDED && update->deadline - batch->sent <= places;
}

static uint32_t slowest_due(const struct batch *batch, uint32_t places)
{
	uint32_t slowest = NO_UPDATE;
	uint64_t latest = 0;

	for (uint32_t i = 0; i < batch->count; i++) {
		if (!is_due(batch, &batch->updates[i], places))
			continue;
		uint64_t end = end_of(batch, &batch->updates[i]);

		if (slowest == NO_UPDATE || end > latest) {
			slowest = i;
			latest = end;
		}
	}
	return slowest;
}

/* Updates that cannot all be in time. Once they can, no pick below makes them late. */
static void drop_hopeless(struct batch *batch)
{
	uint32_t places;

	for (uint32_t i = 0; i < batch->count; i++) {
		struct order_update *update = &batch->updates[i];

		update->fate = update->deadline < 1 ? ORDER_LATE : UNDECIDED;
	}
	while ((places = least_full(batch, 1)) > 0)
		batch->updates[slowest_due(batch, places)].fate = ORDER_CROWDED;
}

/* ---- picks ---- */

/* Among those that are due within so many places (0: all), one that has waited, if any, and the one that is there
 * first. */
static uint32_t shortest(const struct batch *batch, uint32_t places)
{
	uint32_t best = NO_UPDATE;
	uint64_t earliest = CALENDAR_NEVER;
	bool has_waited = false;

	for (uint32_t i = 0; i < batch->count; i++) {
		const struct order_update *update = &batch->updates[i];

		if (update->fate != UNDECIDED || (places > 0 && !is_due(batch, update, places)) ||
		    (has_waited && !update->has_waited))
			continue;
		uint64_t end = end_of(batch, update);
		if (best == NO_UPDATE || end < earliest || (update->has_waited && !has_waited)) {
			best = i;
			earliest = end;
			has_waited = update->has_waited;
		}
	}
	return best;
}

/* NO_UPDATE: all are decided. */
static uint32_t pick(const struct batch *batch, bool *out_forced)
{
	uint32_t places = least_full(batch, 0);

	*out_forced = places > 0;
	return shortest(batch, places);
}

/* Would its successor be there before it? The update is booked, and counts as sent. */
static bool is_overtaken(struct batch *batch, const struct order_update *update)
{
	bool is_forced;

	batch->sent++;
	uint32_t next = pick(batch, &is_forced);
	batch->sent--;
	return next != NO_UPDATE && end_of(batch, &batch->updates[next]) < update->span.end;
}

static void send_next(struct batch *batch, struct order_update *update, bool is_forced)
{
	uint64_t mark = calendar_mark(batch->calendar);

	update->is_forced = is_forced;
	update->booking = calendar_take(batch->calendar, &update->path, update->from, update->bytes, &update->span);
	if (update->booking == CALENDAR_NONE) {
		update->fate = ORDER_UNBOOKED;
		return;
	}
	update->fate = ORDER_SENT;
	if (is_forced && is_overtaken(batch, update)) {
		calendar_rollback(batch->calendar, mark);
		update->fate = ORDER_OVERTAKEN;
		update->place = batch->sent + 1;
		return;
	}
	update->place = ++batch->sent;
}

uint32_t order_run(struct calendar *calendar, struct order_update *updates, uint32_t count)
{
	struct batch batch = {.calendar = calendar, .updates = updates, .count = count};
	bool is_forced;
	uint32_t next;

	assert(count <= ORDER_UPDATES_MOST);
	drop_hopeless(&batch);
	while ((next = pick(&batch, &is_forced)) != NO_UPDATE)
		send_next(&batch, &updates[next], is_forced);
	return batch.sent;
}
