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
	uint32_t flags;
	uint32_t sent;  /* places that are taken */
	uint64_t ends[ORDER_UPDATES_MOST]; /* none is there before: bookings only take from links */
	/* Of the updates that are undecided, close together, as they are looked at again and again. */
	uint32_t open_count;
	struct open { int64_t deadline; uint32_t row; bool has_waited; } open[ORDER_UPDATES_MOST];
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
	for (uint32_t i = 0; i < batch->open_count; i++) {
		int64_t within = batch->open[i].deadline - batch->sent;

		assert(within >= 1);
		if (within <= batch->count)
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

static void open_all(struct batch *batch)
{
	batch->open_count = 0;
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct order_update *update = &batch->updates[i];

		if (update->fate == UNDECIDED)
			batch->open[batch->open_count++] = (struct open){update->deadline, i, update->has_waited};
	}
}

static void drop_or_release(const struct batch *batch, struct order_update *update, enum order_fate fate)
{
	if (batch->flags & (ORDER_NO_DROPS | ORDER_NO_DEADLINES))
		update->deadline = INT64_MAX;
	else
		update->fate = (uint8_t)fate;
}

/* Updates that cannot all be in time. Once they can, no pick below makes them late. */
static void drop_hopeless(struct batch *batch)
{
	uint32_t places;

	for (uint32_t i = 0; i < batch->count; i++) {
		struct order_update *update = &batch->updates[i];

		update->fate = UNDECIDED;
		if (update->deadline < 1 || batch->flags & ORDER_NO_DEADLINES)
			drop_or_release(batch, update, ORDER_LATE);
	}
	open_all(batch);
	while ((places = least_full(batch, 1)) > 0) {
		drop_or_release(batch, &batch->updates[slowest_due(batch, places)], ORDER_CROWDED);
		open_all(batch);
	}
}

/* ---- picks ---- */

/*
 * Of the open updates that are due within so many places (0: all): the index of one that has waited, if any, with the
 * least end.
 */
static uint32_t least_end(const struct batch *batch, uint32_t places)
{
	uint32_t best = NO_UPDATE;
	int64_t last = places > 0 ? (int64_t)batch->sent + places : INT64_MAX;
	uint64_t least = CALENDAR_NEVER;
	bool has_waited = false;

	for (uint32_t i = 0; i < batch->open_count; i++) {
		const struct open *open = &batch->open[i];
		uint64_t end = batch->ends[i];

		if (open->deadline > last || open->has_waited < has_waited)
			continue;
		if (best == NO_UPDATE || end < least || open->has_waited > has_waited) {
			best = i;
			least = end;
			has_waited = open->has_waited;
		}
	}
	return best;
}

/*
 * The one that is there first. Ends are lower bounds: the least one is computed anew until it stays the least, which
 * takes a few of all in place of each.
 */
static uint32_t shortest(struct batch *batch, uint32_t places)
{
	uint32_t best;

	while ((best = least_end(batch, places)) != NO_UPDATE) {
		uint64_t end = end_of(batch, &batch->updates[batch->open[best].row]);

		bool is_least = end <= batch->ends[best];
		batch->ends[best] = end;
		if (is_least)
			break;
	}
	return best;
}

/* NO_UPDATE: all are decided. */
static uint32_t pick(struct batch *batch, bool *out_forced)
{
	uint32_t places = least_full(batch, 0);

	*out_forced = places > 0;
	return shortest(batch, places);
}

/* Would its successor be there before it? The update is booked, and counts as sent. */
static bool is_overtaken(struct batch *batch, const struct order_update *update)
{
	bool is_forced;
	uint64_t ends[ORDER_UPDATES_MOST];

	memcpy(ends, batch->ends, batch->open_count * sizeof(ends[0]));
	batch->sent++;
	uint32_t next = pick(batch, &is_forced);
	batch->sent--;
	bool is_late = next != NO_UPDATE && batch->ends[next] < update->span.end;
	if (is_late) /* its booking is undone, and with it the ends that follow from it */
		memcpy(batch->ends, ends, batch->open_count * sizeof(ends[0]));
	return is_late;
}

static void close_open(struct batch *batch, uint32_t at)
{
	batch->open_count--;
	memmove(&batch->open[at], &batch->open[at + 1], (batch->open_count - at) * sizeof(batch->open[0]));
	memmove(&batch->ends[at], &batch->ends[at + 1], (batch->open_count - at) * sizeof(batch->ends[0]));
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
	if (is_forced && !(batch->flags & ORDER_NO_DROPS) && is_overtaken(batch, update)) {
		calendar_rollback(batch->calendar, mark);
		update->fate = ORDER_OVERTAKEN;
		update->place = batch->sent + 1;
		return;
	}
	update->place = ++batch->sent;
}

uint32_t order_run(struct calendar *calendar, struct order_update *updates, uint32_t count)
{
	return order_run_with(calendar, updates, count, 0);
}

uint32_t order_run_with(struct calendar *calendar, struct order_update *updates, uint32_t count, uint32_t flags)
{
	struct batch batch = {.calendar = calendar, .updates = updates, .count = count, .flags = flags};
	bool is_forced;
	uint32_t next;

	assert(count <= ORDER_UPDATES_MOST);
	drop_hopeless(&batch);
	while ((next = pick(&batch, &is_forced)) != NO_UPDATE) {
		uint32_t row = batch.open[next].row;

		close_open(&batch, next);
		send_next(&batch, &updates[row], is_forced);
	}
	return batch.sent;
}
