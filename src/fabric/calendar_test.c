/*
 * The calendar: figure 4, several links, rates that change, and random bookings beside a plain model of a second each.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "fabric/calendar.h"

#define MB UINT64_C(1000000)

static struct calendar *open_calendar(uint32_t links)
{
	struct calendar *calendar;

	CHECK(calendar_open(links, 512, 64, &calendar, NULL) == ESP_OK);
	return calendar;
}

/* 30 MB over a link of 2 MB/s up to 3 s, 8 up to 5 s, then 4: there at 7 s, and nothing is left up to then. */
static void test_figure_4(void)
{
	struct calendar *calendar = open_calendar(1);
	const struct calendar_path path = {1, {0}};
	struct calendar_span span;

	CHECK(calendar_set_rate(calendar, 0, 0, 2 * MB) && calendar_set_rate(calendar, 0, 3 * NS_PER_S, 8 * MB) &&
	      calendar_set_rate(calendar, 0, 5 * NS_PER_S, 4 * MB));
	CHECK_U64(calendar_fit(calendar, &path, 0, 30 * MB), 7 * NS_PER_S);
	uint32_t booking = calendar_take(calendar, &path, 0, 30 * MB, &span);
	CHECK(booking != CALENDAR_NONE && span.begin == 0 && span.end == 7 * NS_PER_S);
	CHECK_U64(calendar_left(calendar, 0, 7 * NS_PER_S - 1), 0);
	CHECK_U64(calendar_left(calendar, 0, 7 * NS_PER_S), 4 * MB);
	CHECK_U64(calendar_booked_until(calendar, 0), 7 * NS_PER_S);
	CHECK_U64(calendar_fit(calendar, &path, 0, 4 * MB), 8 * NS_PER_S);
	calendar_give_back(calendar, booking, 4 * NS_PER_S);
	CHECK_U64(calendar_fit(calendar, &path, 0, 8 * MB), 5 * NS_PER_S);
	calendar_give_back(calendar, booking, 0);
	CHECK_U64(calendar_fit(calendar, &path, 0, 30 * MB), 7 * NS_PER_S);
	CHECK_U64(calendar_bookings(calendar), 0);
	calendar_close(calendar);
}

static void test_path_and_mark(void)
{
	struct calendar *calendar = open_calendar(3);
	const struct calendar_path slow = {2, {0, 2}}, fast = {2, {1, 2}};
	struct calendar_span span;

	for (uint32_t link = 0; link < 3; link++)
		CHECK(calendar_set_rate(calendar, link, 0, link == 0 ? 10 * MB : 100 * MB));
	CHECK_U64(calendar_fit(calendar, &slow, 0, 100 * MB), 10 * NS_PER_S);
	uint64_t mark = calendar_mark(calendar);
	CHECK(calendar_take(calendar, &slow, 0, 100 * MB, &span) != CALENDAR_NONE);
	CHECK_U64(calendar_left(calendar, 2, 0), 90 * MB);
	CHECK_U64(calendar_fit(calendar, &fast, 0, 90 * MB), NS_PER_S);
	CHECK(calendar_take(calendar, &fast, 0, 90 * MB, &span) != CALENDAR_NONE);
	calendar_rollback(calendar, mark);
	CHECK_U64(calendar_fit(calendar, &fast, 0, 100 * MB), NS_PER_S);
	CHECK_U64(calendar_bookings(calendar), 0);
	CHECK(calendar_set_rate(calendar, 1, 0, 0));
	CHECK_U64(calendar_fit(calendar, &fast, 0, 1), CALENDAR_NEVER);
	CHECK(calendar_take(calendar, &fast, 0, 1, &span) == CALENDAR_NONE);
	calendar_close(calendar);
}

static void test_refused(void)
{
	struct calendar *calendar;
	struct error err;

	CHECK(calendar_open(0, 64, 1, &calendar, &err) == ESP_EINVAL &&
	      calendar_open(1, 1, 1, &calendar, &err) == ESP_EINVAL);
	calendar = open_calendar(1);
	const struct calendar_path path = {1, {0}};
	struct calendar_span span;
	CHECK(calendar_set_rate(calendar, 0, 0, MB));
	for (uint32_t i = 0; i < 64; i++)
		CHECK(calendar_take(calendar, &path, i * NS_PER_S, MB / 2, &span) != CALENDAR_NONE);
	CHECK(calendar_take(calendar, &path, 0, 1, &span) == CALENDAR_NONE); /* no booking is left */
	calendar_trim(calendar, 100 * NS_PER_S);
	CHECK_U64(calendar_fit(calendar, &path, 0, MB), 101 * NS_PER_S); /* the past is not booked */
	calendar_close(calendar);
}

/* ---- beside a plain model: what each second of each link holds ---- */

#define LINKS 4u
#define SECONDS 400u

struct model {
	uint64_t rate[LINKS][SECONDS];
};

/* Whole seconds and whole megabytes, so that rounding plays no part. */
static uint64_t model_take(struct model *model, const struct calendar_path *path, uint64_t from, uint64_t bytes,
                           bool books)
{
	for (uint64_t t = from; t < SECONDS; t++) {
		uint64_t rate = UINT64_MAX;

		for (uint32_t i = 0; i < path->count; i++)
			rate = model->rate[path->links[i]][t] < rate ? model->rate[path->links[i]][t] : rate;
		for (uint32_t i = 0; books && i < path->count; i++)
			model->rate[path->links[i]][t] -= rate;
		if (rate > 0 && bytes <= rate * MB)
			return t * NS_PER_S + (bytes * 1000 + rate - 1) / rate; /* bytes / (rate * MB) seconds */
		bytes -= rate * MB;
	}
	return CALENDAR_NEVER;
}

static void draw_path(struct rng *rng, struct calendar_path *out)
{
	uint32_t first = (uint32_t)rng_below(rng, LINKS), count = (uint32_t)rng_below(rng, 3) + 1;

	*out = (struct calendar_path){.count = count};
	for (uint32_t i = 0; i < count; i++)
		out->links[i] = (first + i) % LINKS;
}

static void play(uint64_t seed)
{
	struct calendar *calendar = open_calendar(LINKS);
	struct model model;
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t link = 0; link < LINKS; link++) {
		uint64_t change = rng_below(&rng, 40), before = rng_below(&rng, 9), after = rng_below(&rng, 9) + 1;

		CHECK(calendar_set_rate(calendar, link, 0, before * MB) &&
		      calendar_set_rate(calendar, link, change * NS_PER_S, after * MB));
		for (uint32_t t = 0; t < SECONDS; t++)
			model.rate[link][t] = t < change ? before : after;
	}
	for (uint32_t step = 0; step < 12; step++) {
		struct calendar_path path;
		struct calendar_span span;
		struct model copy = model;
		uint64_t mark = calendar_mark(calendar), from = rng_below(&rng, 60);

		/* So many bytes that the model ends at the end of a second: what it books is what the calendar books. */
		draw_path(&rng, &path);
		uint64_t seconds = rng_below(&rng, 20) + 1, bytes = 0;
		for (uint64_t t = from; t < from + seconds; t++) {
			uint64_t rate = UINT64_MAX;

			for (uint32_t i = 0; i < path.count; i++)
				rate = model.rate[path.links[i]][t] < rate ? model.rate[path.links[i]][t] : rate;
			bytes += rate * MB;
		}
		if (bytes == 0)
			continue;
		uint64_t end = model_take(&model, &path, from, bytes, true);
		CHECK_U64(calendar_fit(calendar, &path, from * NS_PER_S, bytes), end);
		CHECK(calendar_take(calendar, &path, from * NS_PER_S, bytes, &span) != CALENDAR_NONE && span.end == end);
		CHECK_U64(calendar_fit(calendar, &path, from * NS_PER_S, 3 * MB),
		          model_take(&model, &path, from, 3 * MB, false));
		if (rng_chance(&rng, 1, 3)) {
			calendar_rollback(calendar, mark);
			model = copy;
			CHECK_U64(calendar_fit(calendar, &path, from * NS_PER_S, bytes), end);
		}
	}
	calendar_close(calendar);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 5000);

	test_figure_4();
	test_path_and_mark();
	test_refused();
	for (uint64_t seed = first; seed < first + count; seed++)
		play(seed);
	return 0;
}
