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
	struct bundle *out;
};

static bool take(struct cut *cut, const struct calendar_path *path, uint64_t from, uint64_t bytes,
                 uint32_t *out_booking, struct calendar_span *out_span)
{
	*out_booking = calendar_take(cut->calendar, path, from, bytes, out_span);
	return *out_booking != CALENDAR_NONE;
}

/* ---- the first group ---- */

static bool send_direct(struct cut *cut, struct bundle_update *update)
{
	const struct calendar_path path = {2, {update->out, cut->hub_in}};

	update->group = 0;
	if (!take(cut, &path, update->from, update->bytes, &update->booking, &update->span))
		return false;
	update->there = update->span.end;
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
	for (uint32_t i = 0; i < cut->count; i++) {
		if (cut->updates[i].group == group)
			cut->updates[i].there = of->span.end;
	}
	return true;
}

static bool fits(const struct cut *cut, const struct bundle_update *update, uint32_t group)
{
	return cut->out->groups[group - 1].members == 0 || group == cut->aggregator_count ||
	       arrival(cut, update, &cut->aggregators[group - 1]) <= cut->blocked;
}

static bool send_rest(struct cut *cut, uint32_t first)
{
	uint32_t group = 1;

	for (uint32_t i = first; i < cut->count; i++) {
		if (!fits(cut, &cut->updates[i], group)) {
			if (!close_group(cut, group))
				return false;
			group++;
		}
		if (!join_group(cut, &cut->updates[i], group))
			return false;
	}
	return first == cut->count || close_group(cut, group);
}

/* ---- cuts ---- */

static bool make(struct cut *cut, uint32_t direct)
{
	*cut->out = (struct bundle){.direct = direct};
	cut->blocked = calendar_booked_until(cut->calendar, cut->hub_in);
	for (uint32_t i = 0; i < cut->aggregator_count; i++)
		cut->out->groups[i].booking = CALENDAR_NONE;
	for (uint32_t i = 0; i < cut->count; i++)
		cut->updates[i].group = 0;
	for (uint32_t i = 0; i < direct; i++) {
		if (!send_direct(cut, &cut->updates[i]))
			return false;
	}
	if (!send_rest(cut, direct))
		return false;
	for (uint32_t i = 0; i < cut->count; i++) {
		cut->out->last = cut->updates[i].there > cut->out->last ? cut->updates[i].there : cut->out->last;
		cut->out->sum += cut->updates[i].there;
	}
	return true;
}

static bool is_better(const struct bundle *a, const struct bundle *b, enum bundle_goal goal)
{
	return goal == BUNDLE_LAST ? a->last < b->last : a->sum < b->sum;
}

bool bundle_run(struct calendar *calendar, struct bundle_update *updates, uint32_t count,
                const struct bundle_aggregator *aggregators, uint32_t aggregator_count, uint32_t hub_in,
                enum bundle_goal goal, struct bundle *out)
{
	struct cut cut = {.calendar = calendar, .updates = updates, .count = count, .aggregators = aggregators,
	                  .aggregator_count = aggregator_count, .hub_in = hub_in, .out = out};
	struct bundle best = {.direct = UINT32_MAX};

	assert(count <= BUNDLE_UPDATES_MOST && aggregator_count <= BUNDLE_AGGREGATORS_MOST);
	for (uint32_t direct = aggregator_count > 0 ? 0 : count; direct <= count; direct++) {
		uint64_t mark = calendar_mark(calendar);

		if (make(&cut, direct) && (best.direct == UINT32_MAX || is_better(out, &best, goal)))
			best = *out;
		calendar_rollback(calendar, mark);
	}
	if (best.direct == UINT32_MAX)
		return false;
	bool is_made = make(&cut, best.direct);
	assert(is_made && out->sum == best.sum);
	return is_made;
}
