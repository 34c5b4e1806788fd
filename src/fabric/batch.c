#include "fabric/batch.h"

#include <assert.h>
#include <string.h>

const char *const batch_way_names[] = {"direct", "bundles", "chains", NULL};

/* A batch that is being decided. */
struct work {
	const struct batch_config *config;
	struct batch_update *updates;
	uint32_t count;
	struct batch *out;
	uint32_t rows[BATCH_UPDATES_MOST]; /* of the updates that are sent, by place */
	uint32_t sent;
};

/* ---- the order ---- */

/* Bookings of the order are undone unless they stand: BATCH_DIRECT. */
static void order_all(struct work *work)
{
	struct order_update *orders = work->out->orders;
	struct calendar *calendar = work->config->calendar;
	uint64_t mark = calendar_mark(calendar);

	for (uint32_t i = 0; i < work->count; i++) {
		const struct batch_update *update = &work->updates[i];

		orders[i] = (struct order_update){.path = {2, {update->out, work->config->hub}},
		                                  .bytes = update->bytes,
		                                  .from = update->from,
		                                  .deadline = update->deadline,
		                                  .has_waited = update->has_waited};
	}
	work->sent = order_run_with(calendar, orders, work->count, work->config->order_flags);
	for (uint32_t i = 0; i < work->count; i++) {
		struct batch_update *update = &work->updates[i];

		update->fate = orders[i].fate;
		update->place = orders[i].place;
		update->booking = update->fate == ORDER_SENT ? orders[i].booking : CALENDAR_NONE;
		update->span = orders[i].span;
		update->there = orders[i].span.end;
		update->group = update->inputs = 0;
		update->next = BATCH_HUB;
		if (update->fate == ORDER_SENT)
			work->rows[update->place - 1] = i;
		if (work->config->order_flags)
			update->deadline = orders[i].deadline;
	}
	if (work->config->way != BATCH_DIRECT)
		calendar_rollback(calendar, mark);
}

static void give_back(const struct work *work, uint32_t *booking)
{
	if (*booking != CALENDAR_NONE)
		calendar_give_back(work->config->calendar, *booking, 0);
	*booking = CALENDAR_NONE;
}

static void leave_for_next(struct work *work, struct batch_update *update)
{
	give_back(work, &update->booking);
	update->fate = ORDER_UNBOOKED;
}

static bool begins_too_late(const struct work *work, const struct batch_update *update)
{
	return update->span.begin >= work->config->next_batch && !update->has_waited;
}

static void place_direct(struct work *work)
{
	for (uint32_t i = 0; i < work->sent; i++) {
		struct batch_update *update = &work->updates[work->rows[i]];

		if (begins_too_late(work, update))
			leave_for_next(work, update);
		else
			update->place = ++work->out->sent;
	}
}

/* ---- bundles ---- */

/* Hosts of updates that are sent, each once, in a drawn order. out_rows: an update of each. */
static uint32_t draw_aggregators(const struct work *work, struct bundle_aggregator *out, uint32_t *out_rows)
{
	uint32_t rows[BATCH_UPDATES_MOST], count = 0;

	memcpy(rows, work->rows, work->sent * sizeof(rows[0]));
	for (uint32_t i = 0; i < work->sent && count < BATCH_AGGREGATORS; i++) {
		uint32_t at = i + (uint32_t)rng_below(work->config->rng, work->sent - i), row = rows[at];
		const struct batch_update *update = &work->updates[row];
		bool is_new = true;

		rows[at] = rows[i];
		for (uint32_t j = 0; j < count; j++)
			is_new &= out[j].host != update->host;
		if (!is_new)
			continue;
		out[count] = (struct bundle_aggregator){update->host, update->in, update->out};
		out_rows[count++] = row;
	}
	return count;
}

static void take_bundle_row(struct work *work, const struct bundle_update *from, const struct bundle *bundle,
                            const uint32_t *relays, uint32_t row)
{
	struct batch_update *update = &work->updates[row];

	update->booking = from->booking;
	update->span = from->span;
	update->there = from->there;
	update->group = from->group;
	update->place = ++work->out->sent;
	if (from->group == 0)
		return;
	struct batch_group *group = &work->out->group[from->group - 1];
	uint32_t relay = relays[from->group - 1];

	if (group->members++ == 0) {
		*group = (struct batch_group){.first = update->place, .members = 1, .carrier = relay, .relay = relay,
		                              .booking = bundle->groups[from->group - 1].booking,
		                              .span = bundle->groups[from->group - 1].span};
		work->out->groups = from->group;
	}
	update->next = row == relay ? BATCH_HUB : relay;
}

/* The last groups that would begin after the next batch are left for it. */
static void cut_late_groups(struct work *work)
{
	while (work->out->sent > 0) {
		uint32_t last = work->rows[work->out->sent - 1], group = work->updates[last].group;
		uint32_t members = group > 0 ? work->out->group[group - 1].members : 1;
		bool is_late = true;

		for (uint32_t i = 0; i < members; i++)
			is_late &= begins_too_late(work, &work->updates[work->rows[work->out->sent - 1 - i]]);
		if (!is_late)
			return;
		for (uint32_t i = 0; i < members; i++)
			leave_for_next(work, &work->updates[work->rows[--work->out->sent]]);
		if (group > 0) {
			give_back(work, &work->out->group[group - 1].booking);
			work->out->groups--;
		}
	}
}

static void make_bundles(struct work *work)
{
	struct bundle_update *bundles = work->out->bundles;
	struct bundle_aggregator aggregators[BATCH_AGGREGATORS];
	uint32_t relays[BATCH_AGGREGATORS], count = draw_aggregators(work, aggregators, relays);
	struct bundle bundle;

	for (uint32_t i = 0; i < work->sent; i++) {
		const struct batch_update *update = &work->updates[work->rows[i]];

		bundles[i] = (struct bundle_update){
			.host = update->host, .out = update->out, .bytes = update->bytes, .from = update->from};
	}
	bool is_made = bundle_run(work->config->calendar, bundles, work->sent, aggregators, count, work->config->hub,
	                          work->config->goal, &bundle);
	for (uint32_t i = 0; i < work->sent; i++) {
		if (is_made)
			take_bundle_row(work, &bundles[i], &bundle, relays, work->rows[i]);
		else
			leave_for_next(work, &work->updates[work->rows[i]]);
	}
	if (is_made)
		cut_late_groups(work);
}

/* ---- chains ---- */

static uint32_t find_stops(const struct work *work, struct chain_stop *stops)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < work->sent; i++) {
		const struct batch_update *update = &work->updates[work->rows[i]];
		uint32_t at = 0;

		while (at < count && stops[at].tag != update->host)
			at++;
		if (at == count)
			stops[count++] = (struct chain_stop){.in = update->in, .out = update->out, .tag = update->host};
		stops[at].weight++;
		stops[at].from = update->from > stops[at].from ? update->from : stops[at].from;
	}
	return count;
}

/* Updates that are to be placed: sent, and in no chain yet. */
static bool is_open(const struct batch_update *update)
{
	return update->fate == ORDER_SENT && update->place == 0;
}

static bool is_among(const struct chain_stop *stops, uint32_t count, uint32_t host)
{
	for (uint32_t i = 0; i < count; i++) {
		if (stops[i].tag == host)
			return true;
	}
	return false;
}

/*
 * With these stops as the next chain: a host that has to join them, as an update of it, or one before it, could not be
 * in time behind them; BATCH_HUB: there is none.
 */
static uint32_t due_host(const struct work *work, const struct chain_stop *stops, uint32_t length)
{
	uint32_t due[BATCH_UPDATES_MOST + 1] = {0}, host[BATCH_UPDATES_MOST + 1], placed = work->out->sent, within = 0;

	for (uint32_t i = 0; i < length; i++)
		placed += stops[i].weight;
	for (uint32_t i = 0; i < work->sent; i++) {
		const struct batch_update *update = &work->updates[work->rows[i]];

		if (!is_open(update) || is_among(stops, length, update->host) || update->deadline > work->count)
			continue;
		due[update->deadline]++;
		host[update->deadline] = update->host;
	}
	for (uint32_t place = 1, first = 0; place <= work->count; place++) {
		if (due[place] > 0 && first == 0)
			first = place;
		within += due[place];
		if (within > 0 && placed + within > place)
			return host[first];
	}
	return BATCH_HUB;
}

static void swap_stops(struct chain_stop *a, struct chain_stop *b)
{
	struct chain_stop stop = *a;

	*a = *b;
	*b = stop;
}

/* Hosts that are due join the chain. */
static uint32_t take_due(const struct work *work, struct chain_stop *stops, uint32_t count, uint32_t length)
{
	uint32_t host;

	while (length < CHAIN_STOPS_MOST && (host = due_host(work, stops, length)) != BATCH_HUB) {
		uint32_t at = length;

		while (at < count && stops[at].tag != host)
			at++;
		assert(at < count);
		swap_stops(&stops[length++], &stops[at]);
	}
	return length;
}

/* Open updates of the chain's hosts, by deadline. */
static uint32_t find_members(const struct work *work, const struct chain_stop *stops, uint32_t length, uint32_t *rows)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < work->sent; i++) {
		uint32_t row = work->rows[i], at = count;

		if (!is_open(&work->updates[row]) || !is_among(stops, length, work->updates[row].host))
			continue;
		for (; at > 0 && work->updates[rows[at - 1]].deadline > work->updates[row].deadline; at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
		count++;
	}
	return count;
}

/* Members whose place is too late after all are dropped; the stop of none is left out. Returns the members. */
static uint32_t place_members(struct work *work, struct chain_stop *stops, uint32_t *length, uint32_t *rows)
{
	uint32_t count = find_members(work, stops, *length, rows), kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct batch_update *update = &work->updates[rows[i]];

		if (update->deadline < work->out->sent + 1) {
			update->fate = ORDER_CROWDED;
			for (uint32_t j = 0; j < *length; j++)
				stops[j].weight -= stops[j].tag == update->host;
			continue;
		}
		update->place = ++work->out->sent;
		rows[kept++] = rows[i];
	}
	for (uint32_t j = *length; j-- > 0;) {
		if (stops[j].weight == 0)
			stops[j] = stops[--*length];
	}
	return kept;
}

/* Each host's first member sends for the host: to the next stop, the last one to the hub. */
static void link_members(struct work *work, const struct chain_stop *stops, uint32_t length, const uint32_t *rows,
                         uint32_t count, uint32_t *out_carrier)
{
	uint32_t next = BATCH_HUB;

	for (uint32_t stop = length; stop-- > 0;) {
		uint32_t first = BATCH_HUB;

		for (uint32_t i = 0; i < count; i++) {
			struct batch_update *update = &work->updates[rows[i]];

			if (update->host != stops[stop].tag)
				continue;
			update->next = first == BATCH_HUB ? next : first;
			first = first == BATCH_HUB ? rows[i] : first;
			if (update->next != BATCH_HUB)
				work->updates[update->next].inputs++;
		}
		next = first;
		if (stop + 1 == length)
			*out_carrier = first;
	}
}

static void unplace(struct work *work, const uint32_t *rows, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		work->updates[rows[i]].fate = ORDER_UNBOOKED;
	work->out->sent -= count;
}

/* Stops of one chain, which are not yet booked. Its bytes are those of its greatest update. */
static void make_chain(struct work *work, struct chain_case *about, struct chain_stop *stops, uint32_t length)
{
	uint32_t rows[BATCH_UPDATES_MOST], count = place_members(work, stops, &length, rows), carrier = BATCH_HUB;
	struct batch_group group = {.first = work->out->sent - count + 1, .members = count};

	if (count == 0)
		return;
	group.booking = chain_book(about, stops, length, &group.span);
	if (group.booking == CALENDAR_NONE) {
		unplace(work, rows, count);
		return;
	}
	link_members(work, stops, length, rows, count, &carrier);
	group.carrier = group.relay = carrier;
	work->out->group[work->out->groups++] = group;
	for (uint32_t i = 0; i < count; i++) {
		struct batch_update *update = &work->updates[rows[i]];

		update->group = work->out->groups;
		update->span = group.span;
		update->there = group.span.end;
	}
}

static void make_chains(struct work *work)
{
	struct chain_stop stops[BATCH_UPDATES_MOST];
	struct chain_case about = {.calendar = work->config->calendar, .hub = work->config->hub, .way = CHAIN_TO_HUB,
	                           .now = work->config->now};
	uint32_t count = find_stops(work, stops), length;
	const struct batch_config *config = work->config;
	bool is_free = chain_may_begin(config->calendar, config->hub, config->now, config->next_batch);

	for (uint32_t i = 0; i < work->sent; i++) {
		struct batch_update *update = &work->updates[work->rows[i]];

		update->place = 0;
		update->booking = CALENDAR_NONE;
		about.bytes = update->bytes > about.bytes ? update->bytes : about.bytes;
		if (!is_free)
			update->fate = ORDER_UNBOOKED;
	}
	if (!is_free)
		return;
	chain_sort(&about, stops, count);
	for (struct chain_stop *at = stops; count > 0; at += length, count -= length) {
		length = chain_length(&about, at, count);
		if (length == 0)
			break;
		length = take_due(work, at, count, length);
		make_chain(work, &about, at, length);
	}
	for (uint32_t i = 0; i < work->sent; i++) {
		if (is_open(&work->updates[work->rows[i]]))
			work->updates[work->rows[i]].fate = ORDER_UNBOOKED;
	}
}

void batch_run(const struct batch_config *config, struct batch_update *updates, uint32_t count, struct batch *out)
{
	struct work work = {.config = config, .updates = updates, .count = count, .out = out};

	assert(count <= BATCH_UPDATES_MOST && config->next_batch > config->now);
	out->sent = out->groups = 0;
	memset(out->group, 0, BATCH_AGGREGATORS * sizeof(out->group[0]));
	order_all(&work);
	if (config->way == BATCH_DIRECT)
		place_direct(&work);
	else if (work.sent > 0 && config->way == BATCH_BUNDLES)
		make_bundles(&work);
	else if (work.sent > 0)
		make_chains(&work);
}
