#include "fabric/chain.h"

#include <assert.h>

#include "base/clock.h"

#define LEFT_PART 2u /* half of the hub's link: of 1, 1/2, 1/8 and 1/64 the most updates (docs/results/fabric.md) */

static bool is_before(const struct chain_stop *a, const struct chain_stop *b)
{
	return a->alone < b->alone;
}

static uint64_t start(const struct chain_case *about, const struct chain_stop *stops, uint32_t count)
{
	uint64_t from = about->now;

	for (uint32_t i = 0; i < count; i++)
		from = stops[i].from > from ? stops[i].from : from;
	return from;
}

static uint32_t near_link(const struct chain_case *about, const struct chain_stop *stop)
{
	return about->way == CHAIN_TO_HUB ? stop->out : stop->in;
}

static uint32_t far_link(const struct chain_case *about, const struct chain_stop *stop)
{
	return about->way == CHAIN_TO_HUB ? stop->in : stop->out;
}

/* The stop at the far end does not use its link away from the hub: the one for which that link is slowest. */
static uint32_t far_end(const struct chain_case *about, const struct chain_stop *stops, uint32_t count)
{
	uint32_t end = 0;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t left = calendar_left(about->calendar, far_link(about, &stops[i]), about->now);

		if (left < least) {
			end = i;
			least = left;
		}
	}
	return end;
}

static struct calendar_path path_of(const struct chain_case *about, const struct chain_stop *stops, uint32_t count)
{
	struct calendar_path path = {.count = 1, .links = {about->hub}};
	uint32_t end = far_end(about, stops, count);

	assert(count >= 1 && count <= CHAIN_STOPS_MOST);
	for (uint32_t i = 0; i < count; i++) {
		path.links[path.count++] = near_link(about, &stops[i]);
		if (i != end)
			path.links[path.count++] = far_link(about, &stops[i]);
	}
	return path;
}

static uint64_t through(const struct chain_case *about, const struct chain_stop *stops, uint32_t count)
{
	const struct calendar_path path = path_of(about, stops, count);

	return calendar_fit(about->calendar, &path, start(about, stops, count), about->bytes);
}

bool chain_may_begin(const struct calendar *calendar, uint32_t hub, uint64_t now, uint64_t next_batch)
{
	const struct calendar_path path = {1, {hub}};
	uint64_t rate = calendar_rate(calendar, hub, now);
	uint64_t bytes = (uint64_t)((unsigned __int128)rate * (next_batch - now) / LEFT_PART / NS_PER_S) + 1;

	return rate > 0 && calendar_fit(calendar, &path, now, bytes) < next_batch;
}

void chain_sort(const struct chain_case *about, struct chain_stop *stops, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct chain_stop stop = stops[i];
		uint32_t at = i;

		assert(stop.weight >= 1);
		stop.alone = through(about, &stop, 1);
		for (; at > 0 && is_before(&stop, &stops[at - 1]); at--)
			stops[at] = stops[at - 1];
		stops[at] = stop;
	}
}

uint32_t chain_length(const struct chain_case *about, const struct chain_stop *stops, uint32_t count)
{
	uint32_t best = 0, weight = 0, best_weight = 0;
	uint64_t best_time = 1;

	for (uint32_t n = 1; n <= count && n <= CHAIN_STOPS_MOST && stops[n - 1].alone < CALENDAR_NEVER; n++) {
		uint64_t end = through(about, stops, n);

		weight += stops[n - 1].weight;
		if (end == CALENDAR_NEVER)
			break;
		/* weight per time is greater than the best one's */
		if ((unsigned __int128)weight * best_time > (unsigned __int128)best_weight * (end - about->now)) {
			best = n;
			best_weight = weight;
			best_time = end - about->now;
		}
	}
	return best;
}

static void move_end(const struct chain_case *about, struct chain_stop *stops, uint32_t count, uint32_t end)
{
	struct chain_stop stop = stops[end];

	if (about->way == CHAIN_TO_HUB) {
		for (; end > 0; end--)
			stops[end] = stops[end - 1];
	} else {
		for (; end + 1 < count; end++)
			stops[end] = stops[end + 1];
	}
	stops[end] = stop;
}

uint32_t chain_book(const struct chain_case *about, struct chain_stop *stops, uint32_t count,
                    struct calendar_span *out)
{
	const struct calendar_path path = path_of(about, stops, count);
	uint32_t end = far_end(about, stops, count); /* before anything is booked */
	uint32_t booking =
		calendar_take(about->calendar, &path, start(about, stops, count), about->bytes, out);

	if (booking != CALENDAR_NONE)
		move_end(about, stops, count, end);
	return booking;
}
