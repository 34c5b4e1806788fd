#include "fabric/bundle.h"

#include <assert.h>

/* A cut that is being made. */
struct cut {
	struct calendar *calendar;
	struct bundle_update *updates;
	uint32_t count;
	const struct bundle_aggregator *aggregators;
	uint32_t aggregator_count, hub_in;
	uint64_t blocked; /* until then the hub's link carries the groups before */
	uint32_t closed;  /* updates that are direct or in a closed group: they are in out->last and out->sum */
	enum bundle_goal goal;
	struct bundle best;             /* of the cuts before; direct UINT32_MAX: none */
	unsigned __int128 least[BUNDLE_UPDATES_MOST + 1]; /* the updates from here on add at least this to the sum */
	uint64_t from_least, bytes_least; /* of any update */
	struct bundle *out;
};

static bool take(struct cut *cut, const struct calendar_path *path, uint64_t from, uint64_t bytes,
                 uint32_t *out_booking, struct calendar_span *out_span)
{
	*out_booking = calendar_take(cut->calendar, path, from, bytes, out_span);
	return *out_booking != CALENDAR_NONE;
}

/* The next update in order has its time at the hub. */
static void add_there(struct cut *cut, struct bundle_update *update, uint64_t there)
{
	assert(update == &cut->updates[cut->closed]);
	update->there = there;
	cut->out->last = there > cut->out->last ? there : cut->out->last;
	cut->out->sum += there;
	cut->closed++;
}

/* ---- the first group ---- */

static bool send_direct(struct cut *cut, struct bundle_update *update)
{
	const struct calendar_path path = {2, {update->out, cut->hub_in}};

	update->group = 0;
	if (!take(cut, &path, update->from, update->bytes, &update->booking, &update->span))
		return false;
	add_there(cut, update, update->span.end);
	cut->blocked = update->span.end > cut->blocked ? update->span.end : cut->blocked;
	return true;
}

/* ---- groups ---- */

static bool is_own(const struct bundle_update *update, const struct bundle_aggregator *aggregator)
{
	return update->host == aggregator->host;
}

static uint64_t arrival(const struct cut *cut, const struct bundle_update *update,
                        const struct bundle_aggregator *aggregator)
{
	const struct calendar_path path = {2, {update->out, aggregator->in}};

	if (is_own(update, aggregator))
		return update->from;
	return calendar_fit(cut->calendar, &path, update->from, update->bytes);
}

static bool join_group(struct cut *cut, struct bundle_update *update, uint32_t group)
{
	const struct bundle_aggregator *aggregator = &cut->aggregators[group - 1];
	const struct calendar_path path = {2, {update->out, aggregator->in}};
	struct bundle_group *of = &cut->out->groups[group - 1];

	update->group = group;
	update->booking = CALENDAR_NONE;
	update->span = (struct calendar_span){update->from, update->from};
	if (!is_own(update, aggregator) &&
	    !take(cut, &path, update->from, update->bytes, &update->booking, &update->span))
		return false;
	of->members++;
	of->bytes = update->bytes > of->bytes ? update->bytes : of->bytes;
	of->span.begin = update->span.end > of->span.begin ? update->span.end : of->span.begin;
	return true;
}

/* The aggregate starts when the last member is there. */
static bool close_group(struct cut *cut, uint32_t group)
{
	const struct calendar_path path = {2, {cut->aggregators[group - 1].out, cut->hub_in}};
	struct bundle_group *of = &cut->out->groups[group - 1];

	if (!take(cut, &path, of->span.begin, of->bytes, &of->booking, &of->span))
		return false;
	cut->blocked = of->span.end > cut->blocked ? of->span.end : cut->blocked;
	for (uint32_t left = of->members; left > 0; left--)
		add_there(cut, &cut->updates[cut->closed], of->span.end);
	return true;
}

static bool fits(const struct cut *cut, const struct bundle_update *update, uint32_t group)
{
	return cut->out->groups[group - 1].members == 0 || group == cut->aggregator_count ||
	       arrival(cut, update, &cut->aggregators[group - 1]) <= cut->blocked;
}

/* No update that is still open is there before the hub's link, as it is booked by now, has room for one. */
static uint64_t next_there(const struct cut *cut)
{
	const struct calendar_path path = {1, {cut->hub_in}};

	return cut->closed < cut->count ? calendar_fit(cut->calendar, &path, cut->from_least, cut->bytes_least) : 0;
}

/* Whatever becomes of the open updates, the cut is not better than the best one. */
static bool is_hopeless(const struct cut *cut)
{
	if (cut->best.direct == UINT32_MAX)
		return false;
	if (cut->goal == BUNDLE_LAST)
		return cut->out->last >= cut->best.last;
	unsigned __int128 least = cut->least[cut->closed], next = next_there(cut);

	next *= cut->count - cut->closed;
	return cut->out->sum + (next > least ? next : least) >= cut->best.sum;
}

static bool send_rest(struct cut *cut, uint32_t first)
{
	uint32_t group = 1;

	for (uint32_t i = first; i < cut->count; i++) {
		if (!fits(cut, &cut->updates[i], group)) {
			if (!close_group(cut, group) || is_hopeless(cut))
				return false;
			group++;
		}
		if (!join_group(cut, &cut->updates[i], group))
			return false;
	}
	return first == cut->count || close_group(cut, group);
}

/* ---- cuts ---- */

static void begin(struct cut *cut)
{
	*cut->out = (struct bundle){0};
	cut->blocked = calendar_booked_until(cut->calendar, cut->hub_in);
	cut->closed = 0;
	for (uint32_t i = 0; i < cut->aggregator_count; i++)
		cut->out->groups[i].booking = CALENDAR_NONE;
}

/* No update is there before the hub's link, as it was, has room for it. */
static void find_least(struct cut *cut)
{
	const struct calendar_path path = {1, {cut->hub_in}};

	cut->least[cut->count] = 0;
	cut->from_least = cut->bytes_least = UINT64_MAX;
	for (uint32_t i = cut->count; i-- > 0;) {
		const struct bundle_update *update = &cut->updates[i];

		cut->from_least = update->from < cut->from_least ? update->from : cut->from_least;
		cut->bytes_least = update->bytes < cut->bytes_least ? update->bytes : cut->bytes_least;
		cut->least[i] = cut->least[i + 1] + calendar_fit(cut->calendar, &path, update->from, update->bytes);
	}
}

static bool is_better(const struct bundle *a, const struct bundle *b, enum bundle_goal goal)
{
	return goal == BUNDLE_LAST ? a->last < b->last : a->sum < b->sum;
}

/* Behind the direct updates, which are booked, the rest in groups: if that is the best cut, it is kept in mind. */
static void try_rest(struct cut *cut)
{
	const struct bundle before = *cut->out;
	uint64_t mark = calendar_mark(cut->calendar), blocked = cut->blocked;
	uint32_t direct = cut->closed;

	if (send_rest(cut, direct) && (cut->best.direct == UINT32_MAX || is_better(cut->out, &cut->best, cut->goal))) {
		cut->best = *cut->out;
		cut->best.direct = direct;
	}
	calendar_rollback(cut->calendar, mark);
	*cut->out = before;
	cut->blocked = blocked;
	cut->closed = direct;
}

static uint32_t find_best(struct cut *cut)
{
	cut->best.direct = UINT32_MAX;
	find_least(cut);
	begin(cut);
	for (uint32_t direct = 0; direct <= cut->count && !is_hopeless(cut); direct++) {
		if (cut->aggregator_count > 0 || direct == cut->count)
			try_rest(cut);
		if (direct < cut->count && !send_direct(cut, &cut->updates[direct]))
			break;
	}
	return cut->best.direct;
}

static bool make(struct cut *cut, uint32_t direct)
{
	begin(cut);
	cut->best.direct = UINT32_MAX;
	for (uint32_t i = 0; i < direct; i++) {
		if (!send_direct(cut, &cut->updates[i]))
			return false;
	}
	cut->out->direct = direct;
	return send_rest(cut, direct);
}

bool bundle_cut(struct calendar *calendar, struct bundle_update *updates, uint32_t count,
                const struct bundle_aggregator *aggregators, uint32_t aggregator_count, uint32_t hub_in,
                uint32_t direct, struct bundle *out)
{
	struct cut cut = {.calendar = calendar, .updates = updates, .count = count, .aggregators = aggregators,
	                  .aggregator_count = aggregator_count, .hub_in = hub_in, .out = out};

	assert(count <= BUNDLE_UPDATES_MOST && aggregator_count <= BUNDLE_AGGREGATORS_MOST && direct <= count);
	assert(aggregator_count > 0 || direct == count);
	return make(&cut, direct);
}

bool bundle_run(struct calendar *calendar, struct bundle_update *updates, uint32_t count,
                const struct bundle_aggregator *aggregators, uint32_t aggregator_count, uint32_t hub_in,
                enum bundle_goal goal, struct bundle *out)
{
	struct cut cut = {.calendar = calendar, .updates = updates, .count = count, .aggregators = aggregators,
	                  .aggregator_count = aggregator_count, .hub_in = hub_in, .goal = goal, .out = out};
	uint64_t mark = calendar_mark(calendar);

	assert(count <= BUNDLE_UPDATES_MOST && aggregator_count <= BUNDLE_AGGREGATORS_MOST);
	uint32_t direct = find_best(&cut);
	calendar_rollback(calendar, mark);
	if (direct == UINT32_MAX)
		return false;
	unsigned __int128 sum = cut.best.sum;
	bool is_made = make(&cut, direct);
	assert(is_made && out->sum == sum);
	return is_made;
}
