/*
 * Bundles: figures 2 and 6, and random orders by a checker: groups are consecutive and reach the hub in order, no link
 * is exceeded, each group takes an update only in time, and the best cut is chosen.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "fabric/bundle.h"

#define UNIT UINT64_C(1000000) /* bytes of an update: one second of a link of 1 */
#define MOST 24u
#define AGGREGATORS 8u
/* Links: out of each host, into each host, into the hub. A worker has the host of its number. */
#define OUT(host) (host)
#define IN(host) (MOST + (host))
#define HUB_IN (2 * MOST)
#define LINKS (2 * MOST + 1)

static struct calendar *open_calendar(uint64_t rate)
{
	struct calendar *calendar;

	CHECK(calendar_open(LINKS, 1024, 256, &calendar, NULL) == ESP_OK);
	for (uint32_t link = 0; link < LINKS; link++)
		CHECK(calendar_set_rate(calendar, link, 0, rate));
	return calendar;
}

static struct bundle_update update(uint32_t host)
{
	return (struct bundle_update){.host = host, .out = OUT(host), .bytes = UNIT};
}

static struct bundle_aggregator aggregator(uint32_t host)
{
	return (struct bundle_aggregator){host, IN(host), OUT(host)};
}

/* Four updates over a hub's link of one a second: all at 4 s; with one aggregator, beside two direct ones, at 3 s. */
static void test_figure_2(void)
{
	struct calendar *calendar = open_calendar(UNIT);
	struct bundle_update updates[] = {update(0), update(1), update(2), update(3)};
	const struct bundle_aggregator at = aggregator(9);
	struct bundle bundle;

	CHECK(bundle_run(calendar, updates, 4, &at, 0, HUB_IN, BUNDLE_LAST, &bundle));
	CHECK(bundle.direct == 4 && bundle.last == 4 * NS_PER_S && updates[3].there == 4 * NS_PER_S);
	calendar_rollback(calendar, 0);
	CHECK(bundle_run(calendar, updates, 4, &at, 1, HUB_IN, BUNDLE_LAST, &bundle));
	CHECK(bundle.direct == 2 && bundle.last == 3 * NS_PER_S && bundle.groups[0].members == 2);
	CHECK(updates[1].there == 2 * NS_PER_S && updates[2].there == 3 * NS_PER_S && updates[2].group == 1);
	calendar_close(calendar);
}

/* The hub takes one a second, each aggregator 2/3: behind three direct ones u4 and u5 are in time at 3 s, and u6 is
 * not. */
static void test_figure_6(void)
{
	struct calendar *calendar = open_calendar(UNIT);
	struct bundle_update updates[6];
	const struct bundle_aggregator aggregators[] = {aggregator(9), aggregator(10)};
	struct bundle bundle;

	CHECK(calendar_set_rate(calendar, IN(9), 0, UNIT * 2 / 3 + 1) &&
	      calendar_set_rate(calendar, IN(10), 0, UNIT * 2 / 3 + 1));
	for (uint32_t i = 0; i < 6; i++)
		updates[i] = update(i);
	CHECK(bundle_run(calendar, updates, 6, aggregators, 2, HUB_IN, BUNDLE_LAST, &bundle));
	CHECK_U64(bundle.direct, 3);
	CHECK(updates[3].group == 1 && updates[4].group == 1 && updates[5].group == 2);
	CHECK(bundle.groups[0].span.begin <= 3 * NS_PER_S && bundle.groups[0].span.end == 4 * NS_PER_S);
	CHECK_U64(bundle.last, 5 * NS_PER_S);
	calendar_close(calendar);
}

/* The hub's link is booked already: updates are added meanwhile. One of the aggregator's own host costs no network. */
static void test_blocked_and_own(void)
{
	struct calendar *calendar = open_calendar(UNIT);
	const struct calendar_path to_hub = {1, {HUB_IN}};
	struct bundle_update updates[] = {update(9), update(1), update(2)};
	const struct bundle_aggregator at = aggregator(9);
	struct calendar_span span;
	struct bundle bundle;

	CHECK(calendar_take(calendar, &to_hub, 0, 5 * UNIT, &span) != CALENDAR_NONE);
	CHECK(bundle_run(calendar, updates, 3, &at, 1, HUB_IN, BUNDLE_MEAN, &bundle));
	CHECK(bundle.direct == 0 && bundle.groups[0].members == 3 && bundle.last == 6 * NS_PER_S);
	CHECK(updates[0].booking == CALENDAR_NONE && updates[1].booking != CALENDAR_NONE);
	CHECK(bundle.groups[0].span.begin == 5 * NS_PER_S); /* its bytes are there at 2 s, and the link is free at 5 s */
	CHECK(calendar_set_rate(calendar, OUT(1), 0, 0));
	uint64_t mark = calendar_mark(calendar);
	CHECK(!bundle_run(calendar, updates, 3, &at, 1, HUB_IN, BUNDLE_MEAN, &bundle) && calendar_mark(calendar) == mark);
	calendar_close(calendar);
}

/* ---- random orders ---- */

struct play {
	struct rng rng;
	struct calendar *calendar;
	struct bundle_update updates[MOST];
	struct bundle_aggregator aggregators[AGGREGATORS];
	uint32_t count, aggregator_count;
};

static void draw(struct play *play, uint32_t most_updates, uint32_t most_aggregators)
{
	for (uint32_t link = 0; link < LINKS; link++)
		CHECK(calendar_set_rate(play->calendar, link, 0, (rng_below(&play->rng, 4) + 1) * UNIT / 4));
	play->count = (uint32_t)rng_below(&play->rng, most_updates) + 1;
	play->aggregator_count = (uint32_t)rng_below(&play->rng, most_aggregators + 1);
	for (uint32_t i = 0; i < play->count; i++) {
		play->updates[i] = update((uint32_t)rng_below(&play->rng, MOST));
		play->updates[i].from = rng_chance(&play->rng, 1, 3) ? rng_below(&play->rng, 2000) * NS_PER_MS : 0;
	}
	for (uint32_t i = 0; i < play->aggregator_count; i++)
		play->aggregators[i] = aggregator((uint32_t)rng_below(&play->rng, MOST));
}

/* On an empty calendar: books what the result says, part by part, and finds the rate of each link at each beginning. */
struct part {
	struct calendar_part part;
	uint32_t links[2];
};

static struct part parts[4096];
static uint32_t part_count;

static void add_parts(const struct play *play, uint32_t booking, uint32_t out, uint32_t in)
{
	if (booking == CALENDAR_NONE)
		return;
	for (uint32_t at = 0; calendar_part(play->calendar, booking, &at, &parts[part_count].part); part_count++) {
		CHECK(part_count + 1 < sizeof(parts) / sizeof(parts[0]));
		parts[part_count].links[0] = out;
		parts[part_count].links[1] = in;
	}
}

static void check_capacity(const struct play *play, const struct bundle *bundle)
{
	part_count = 0;
	for (uint32_t i = 0; i < play->count; i++) {
		const struct bundle_update *one = &play->updates[i];

		add_parts(play, one->booking, one->out, one->group == 0 ? HUB_IN : play->aggregators[one->group - 1].in);
	}
	for (uint32_t i = 0; i < play->aggregator_count; i++)
		add_parts(play, bundle->groups[i].booking, play->aggregators[i].out, HUB_IN);
	for (uint32_t i = 0; i < 2 * part_count; i++) {
		uint32_t link = parts[i / 2].links[i % 2];
		uint64_t all = 0, at = parts[i / 2].part.from;

		for (uint32_t j = 0; j < part_count; j++) {
			bool is_here = parts[j].links[0] == link || parts[j].links[1] == link;

			all += is_here && parts[j].part.from <= at && at < parts[j].part.to ? parts[j].part.rate : 0;
		}
		CHECK_MSG(all <= calendar_rate(play->calendar, link, at), "link %u carries %" PRIu64 " of %" PRIu64, link, all,
		          calendar_rate(play->calendar, link, at));
	}
}

static void check_groups(const struct play *play, const struct bundle *bundle)
{
	uint64_t last = 0, blocked = 0;
	unsigned __int128 sum = 0;

	for (uint32_t i = 0; i < play->count; i++) {
		const struct bundle_update *one = &play->updates[i], *before = i > 0 ? one - 1 : NULL;

		CHECK((one->group == 0) == (i < bundle->direct) && (!before || one->group >= before->group));
		CHECK(!before || one->group <= before->group + 1);
		CHECK(one->span.begin >= one->from && one->there >= one->span.end);
		if (before && before->group != one->group)
			blocked = last; /* the hub has all groups before */
		bool is_first = !before || before->group != one->group;
		CHECK(one->group == 0 || is_first || one->group == play->aggregator_count || one->span.end <= blocked);
		CHECK(one->group == 0 || one->there == bundle->groups[one->group - 1].span.end);
		CHECK(one->group == 0 || bundle->groups[one->group - 1].span.begin >= one->span.end);
		last = one->there > last ? one->there : last;
		sum += one->there;
	}
	CHECK(bundle->last == last && bundle->sum == sum);
}

/* Any cut into consecutive groups: the least last time, and the least sum. */
struct search {
	struct play *play;
	uint64_t last;
	unsigned __int128 sum;
};

static void search(struct search *all, uint32_t first, uint32_t group, uint64_t last, unsigned __int128 sum)
{
	struct play *play = all->play;

	if (first == play->count) {
		all->last = last < all->last ? last : all->last;
		all->sum = sum < all->sum ? sum : all->sum;
		return;
	}
	if (group > play->aggregator_count)
		return;
	const struct bundle_aggregator *at = group > 0 ? &play->aggregators[group - 1] : NULL;
	uint64_t mark = calendar_mark(play->calendar), ready = 0, latest = last;
	unsigned __int128 total = sum;
	struct calendar_span span;

	if (group == 0)
		search(all, first, 1, last, sum);
	for (uint32_t i = first; i < play->count; i++) {
		const struct bundle_update *one = &play->updates[i];
		const struct calendar_path path = {2, {one->out, at ? at->in : HUB_IN}};

		span.end = one->from;
		if (!at || one->host != at->host)
			CHECK(calendar_take(play->calendar, &path, one->from, one->bytes, &span) != CALENDAR_NONE);
		ready = span.end > ready ? span.end : ready;
		if (!at) {
			latest = span.end > latest ? span.end : latest;
			total += span.end;
			search(all, i + 1, 1, latest, total);
			continue;
		}
		uint64_t inner = calendar_mark(play->calendar);
		const struct calendar_path up = {2, {at->out, HUB_IN}};
		CHECK(calendar_take(play->calendar, &up, ready, UNIT, &span) != CALENDAR_NONE);
		search(all, i + 1, group + 1, span.end > last ? span.end : last,
		       sum + (unsigned __int128)span.end * (i + 1 - first));
		calendar_rollback(play->calendar, inner);
	}
	calendar_rollback(play->calendar, mark);
}

struct ratios {
	uint64_t count;
	double last, sum, worst_last, worst_sum;
};

/* A cut that is left as hopeless is no better: all cuts, one by one, have the same best one. */
static void check_pruned(struct play *play, const struct bundle *best, enum bundle_goal goal)
{
	struct bundle all = {.direct = UINT32_MAX}, one;

	for (uint32_t direct = play->aggregator_count > 0 ? 0 : play->count; direct <= play->count; direct++) {
		CHECK(bundle_cut(play->calendar, play->updates, play->count, play->aggregators, play->aggregator_count, HUB_IN,
		                 direct, &one));
		if (all.direct == UINT32_MAX || (goal == BUNDLE_LAST ? one.last < all.last : one.sum < all.sum))
			all = one;
		calendar_rollback(play->calendar, 0);
	}
	CHECK_U64(best->direct, all.direct);
	CHECK(best->last == all.last && best->sum == all.sum);
}

static void compare(struct play *play, struct ratios *ratios)
{
	struct search all = {play, UINT64_MAX, (unsigned __int128)-1};
	struct bundle last, sum;

	CHECK(bundle_run(play->calendar, play->updates, play->count, play->aggregators, play->aggregator_count, HUB_IN,
	                 BUNDLE_LAST, &last));
	calendar_rollback(play->calendar, 0);
	CHECK(bundle_run(play->calendar, play->updates, play->count, play->aggregators, play->aggregator_count, HUB_IN,
	                 BUNDLE_MEAN, &sum));
	calendar_rollback(play->calendar, 0);
	CHECK(sum.sum <= last.sum && last.last <= sum.last);
	search(&all, 0, 0, 0, 0);
	double a = (double)last.last / (double)all.last, b = (double)sum.sum / (double)all.sum;
	CHECK_MSG(a > 0.999999 && b > 0.999999, "better than the best cut: %f %f", a, b);
	ratios->count++;
	ratios->last += a;
	ratios->sum += b;
	ratios->worst_last = a > ratios->worst_last ? a : ratios->worst_last;
	ratios->worst_sum = b > ratios->worst_sum ? b : ratios->worst_sum;
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 2000);
	struct play play = {.calendar = open_calendar(UNIT)};
	struct ratios ratios = {0};
	uint64_t aggregated = 0, updates = 0;
	struct bundle bundle;

	test_figure_2();
	test_figure_6();
	test_blocked_and_own();
	for (uint64_t seed = first; seed < first + count; seed++) {
		rng_init(&play.rng, seed);
		draw(&play, MOST, AGGREGATORS);
		CHECK(bundle_run(play.calendar, play.updates, play.count, play.aggregators, play.aggregator_count, HUB_IN,
		                 seed % 2 ? BUNDLE_LAST : BUNDLE_MEAN, &bundle));
		check_groups(&play, &bundle);
		check_capacity(&play, &bundle);
		updates += play.count;
		aggregated += play.count - bundle.direct;
		calendar_rollback(play.calendar, 0);
		check_pruned(&play, &bundle, seed % 2 ? BUNDLE_LAST : BUNDLE_MEAN);
		draw(&play, 5, 3);
		compare(&play, &ratios);
	}
	printf("%" PRIu64 " updates, %" PRIu64
	       " through aggregators; beside the best cut of up to 5 updates and 3 aggregators: last"
	       " %.3f in the mean and %.3f at worst, mean %.3f and %.3f\n",
	       updates, aggregated, ratios.last / (double)ratios.count, ratios.worst_last,
	       ratios.sum / (double)ratios.count, ratios.worst_sum);
	calendar_close(play.calendar);
	return 0;
}
