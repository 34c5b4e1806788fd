/*
 * Sums that the scheduler decides: where they pay, how decisions of one sum belong together, and what goes alone.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "fabric/sched.h"

#define MB UINT64_C(1000000)
#define BATCH (10 * NS_PER_MS)

static struct sched *open_sched(uint32_t workers, uint32_t bound, uint64_t hub_rate, uint64_t rate)
{
	const struct sched_config config = {.workers = workers,
	                                    .bound = bound,
	                                    .batch_ns = BATCH,
	                                    .hub_rate = hub_rate,
	                                    .worker_rate = rate,
	                                    .aggregates = true};
	struct sched *sched;

	CHECK(sched_open(&config, &sched, NULL) == ESP_OK);
	for (uint32_t worker = 0; worker < workers; worker++) {
		CHECK(sched_join(sched, worker, 0, 0, NULL) == ESP_OK);
		sched_set_aggregator(sched, worker, true);
	}
	return sched;
}

static void ready(struct sched *sched, uint32_t worker, uint64_t number, uint64_t from, uint32_t attempts, uint64_t now)
{
	const struct ledger_update update = {
		.number = number, .computed_from = from, .bytes = MB, .norm = 1, .attempts = attempts};

	CHECK(sched_ready(sched, worker, &update, now, NULL) == ESP_OK);
}

/* Decisions of one tick. */
struct told {
	uint32_t count, sums, alone, dropped;
	struct sched_decision list[LEDGER_WORKERS_MOST];
};

static void check_sum(const struct told *told, const struct sched_decision *sum)
{
	uint64_t members = 0, first = UINT64_MAX, last = 0;

	CHECK_U64(sum->aggregator, sum->worker);
	CHECK(sum->wait_ns > 0 && sum->rate > 0);
	for (uint32_t i = 0; i < told->count; i++) {
		const struct sched_decision *one = &told->list[i];

		if (one->bundle != sum->bundle)
			continue;
		CHECK(one->end == LEDGER_APPLIED && one->aggregator == sum->worker);
		CHECK(one == sum || (one->members == 0 && one->patience_ns > sum->wait_ns));
		members |= UINT64_C(1) << one->worker;
		first = one->position < first ? one->position : first;
		last = one->position > last ? one->position : last;
	}
	CHECK_U64(members, sum->members);
	CHECK_U64(first, sum->bundle);
	CHECK_U64(last - first + 1, (uint64_t)__builtin_popcountll(members));
	CHECK(__builtin_popcountll(members) >= 2);
}

static struct told take(struct sched *sched)
{
	struct told told = {0};

	while (sched_next(sched, &told.list[told.count]))
		told.count++;
	for (uint32_t i = 0; i < told.count; i++) {
		const struct sched_decision *one = &told.list[i];

		told.dropped += one->end != LEDGER_APPLIED;
		told.alone += one->end == LEDGER_APPLIED && one->bundle == 0;
		CHECK((one->bundle == 0) == (one->aggregator == SCHED_ALONE));
		if (one->members) {
			told.sums++;
			check_sum(&told, one);
		}
	}
	return told;
}

static void all_ready(struct sched *sched, uint32_t workers, uint32_t attempts)
{
	for (uint32_t worker = 0; worker < workers; worker++)
		ready(sched, worker, 1, 0, attempts, 0);
	sched_tick(sched, BATCH);
}

/* The hub's link is a quarter of a worker's: a sum of several is there sooner than each by itself. */
static void test_pays(void)
{
	struct sched *sched = open_sched(4, 30, 10 * MB, 40 * MB);
	uint64_t sums, updates;

	all_ready(sched, 4, 0);
	struct told told = take(sched);
	CHECK(told.sums >= 1 && told.dropped == 0);
	sched_sums(sched, &sums, &updates);
	CHECK(sums == told.sums && updates >= 2);
	CHECK(sched_hub_booked_until(sched) < BATCH + 400 * NS_PER_MS); /* that is what all by themselves take */
	sched_close(sched);
}

/* Where the hub's link carries all at once no sum pays; one whose sums failed goes by itself. */
static void test_alone(void)
{
	struct sched *sched = open_sched(4, 30, 400 * MB, 40 * MB);

	all_ready(sched, 4, 0);
	CHECK(take(sched).sums == 0);
	sched_close(sched);
	sched = open_sched(4, 30, 10 * MB, 40 * MB);
	all_ready(sched, 4, SCHED_ATTEMPTS);
	CHECK(take(sched).sums == 0);
	sched_close(sched);
	sched = open_sched(4, 30, 10 * MB, 40 * MB);
	for (uint32_t worker = 0; worker < 4; worker++)
		sched_set_aggregator(sched, worker, false);
	all_ready(sched, 4, 0);
	CHECK(take(sched).sums == 0);
	sched_close(sched);
}

/* A sum that failed: its updates are announced again, and counted. */
static void test_broken(void)
{
	struct sched *sched = open_sched(2, 30, 10 * MB, 40 * MB);
	const struct sched_done done = {.number = 1, .end = LEDGER_BROKEN};

	all_ready(sched, 2, 0);
	(void)take(sched);
	for (uint32_t worker = 0; worker < 2; worker++)
		CHECK(sched_done(sched, worker, &done, 2 * BATCH, NULL) == ESP_OK);
	CHECK(sched_ledger(sched)->ends[LEDGER_BROKEN] == 2 && sched_ledger(sched)->decided == 0);
	CHECK(sched_hub_booked_until(sched) <= 2 * BATCH);
	sched_close(sched);
}

/* ---- by seeds: every update is decided, and no place breaks a deadline ---- */

static void report(struct sched *sched, struct rng *rng, uint32_t workers, uint64_t now)
{
	uint32_t worker = (uint32_t)rng_below(rng, workers);

	CHECK(sched_report(sched, worker, MB * (1 + rng_below(rng, 50)), now, NULL) == ESP_OK);
}

static uint64_t play_one(uint64_t seed)
{
	uint64_t now = 0, version = 0, numbers[16] = {0}, from[16] = {0}, sums, updates;
	bool open[16] = {false};
	struct rng rng;

	rng_init(&rng, seed);
	uint32_t workers = 2 + (uint32_t)rng_below(&rng, 15), bound = workers + (uint32_t)rng_below(&rng, 2 * workers);
	struct sched *sched = open_sched(workers, bound, MB * (2 + rng_below(&rng, 50)), MB * (2 + rng_below(&rng, 100)));
	for (uint32_t step = 0; step < 60; step++) {
		for (uint32_t worker = 0; worker < workers; worker++) {
			if (open[worker] || rng_chance(&rng, 1, 3))
				continue;
			from[worker] = version - rng_below(&rng, (version < bound ? version : bound) + 1);
			ready(sched, worker, ++numbers[worker], from[worker], (uint32_t)rng_below(&rng, 40) == 0, now);
			open[worker] = true;
		}
		if (rng_chance(&rng, 1, 10))
			report(sched, &rng, workers, now);
		now = sched_due(sched) != UINT64_MAX && sched_due(sched) > now ? sched_due(sched) : now + BATCH;
		sched_tick(sched, now);
		struct told told = take(sched);
		now += rng_below(&rng, 4 * BATCH);
		for (uint32_t i = 0; i < told.count; i++) {
			const struct sched_decision *one = &told.list[i];
			struct sched_done done = {.number = one->number, .end = LEDGER_APPLIED, .took_ns = rng_below(&rng, BATCH)};

			open[one->worker] = false;
			if (one->end != LEDGER_APPLIED)
				continue;
			done.version = ++version;
			done.delay = version - from[one->worker];
			CHECK(done.delay >= 1 && done.delay <= bound);
			CHECK(sched_done(sched, one->worker, &done, now, NULL) == ESP_OK);
		}
	}
	sched_sums(sched, &sums, &updates);
	sched_close(sched);
	return sums;
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 100), sums = 0;

	test_pays();
	test_alone();
	test_broken();
	for (uint64_t seed = first; seed < first + count; seed++)
		sums += play_one(seed);
	CHECK(sums > count);
	return 0;
}
