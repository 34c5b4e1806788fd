/*
 * Asynchronous jobs in virtual time by seeds: small clusters of every kind with lost workers and aggregators, schedulers
 * that are killed and come again, reports that are late and wrong. Each run checks itself (fabric_world.h): delays by
 * the true version, sums bit for bit, each update once, and progress. With any of these rules broken runs fail.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "base/clock.h"
#include "sim/fabric/fabric_world.h"

#define MB UINT64_C(1000000)

static struct fabric_config draw(uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed * 2 + 1);
	uint32_t workers = (uint32_t)rng_below(&rng, 8) + 2, per_host = (uint32_t)rng_below(&rng, 2) + 1;
	return (struct fabric_config){
		.workers = workers,
		.per_host = per_host,
		.bound = (uint32_t)rng_below(&rng, 3 * workers) + 1,
		.in_flight = (uint32_t)rng_below(&rng, 2) + 1,
		.has_no_sched = rng_chance(&rng, 1, 12),
		.aggregates = rng_chance(&rng, 3, 4),
		.chains = rng_chance(&rng, 1, 2),
		.order_flags = rng_chance(&rng, 1, 4) ? (uint32_t)rng_below(&rng, 4) : 0,
		.has_no_trees = rng_chance(&rng, 1, 4),
		.batch_ns = (rng_below(&rng, 50) + 5) * NS_PER_MS,
		.bytes = (rng_below(&rng, 10) + 1) * MB,
		.compute_ns = rng_below(&rng, 200) * NS_PER_MS + NS_PER_MS,
		.host_rate = 125 * MB,
		.hub_rate = 125 * MB / (rng_below(&rng, 4) + 1),
		.weather = &fabric_weathers[rng_below(&rng, FABRIC_WEATHERS)],
		.stragglers = &fabric_stragglers[rng_below(&rng, FABRIC_STRAGGLERS)],
		.period_ns = (rng_below(&rng, 10) + 1) * 100 * NS_PER_MS,
		.lag_ns = rng_below(&rng, 3) * 100 * NS_PER_MS,
		.wrong_percent = rng_chance(&rng, 1, 3) ? 30 : 0,
		.worker_kills = (uint32_t)rng_below(&rng, workers / 2 + 1),
		.sched_kills = (uint32_t)rng_below(&rng, 3),
		.faults_ns = 2 * NS_PER_S,
		.updates = rng_below(&rng, 8) + 3,
		.seed = seed,
	};
}

struct totals {
	uint64_t runs, applied, ends[LEDGER_ENDS], again, sums, summed, deaths, restarts, longest_ns;
};

static void play(uint64_t seed, struct totals *totals)
{
	const struct fabric_config config = draw(seed);
	struct fabric_result result;
	struct error err;

	CHECK_MSG(fabric_world_run(&config, &result, &err) == ESP_OK, "seed %" PRIu64 ": %s", seed, err.text);
	CHECK_MSG(!result.failure[0], "seed %" PRIu64 " (--seed %" PRIu64 " --seeds 1): %s", seed, seed, result.failure);
	totals->runs++;
	totals->applied += result.applied;
	totals->again += result.again;
	totals->sums += result.sums;
	totals->summed += result.summed;
	totals->deaths += result.deaths;
	totals->restarts += result.restarts;
	for (uint32_t i = 0; i < LEDGER_ENDS; i++)
		totals->ends[i] += result.ends[i];
	totals->longest_ns = result.longest_ns > totals->longest_ns ? result.longest_ns : totals->longest_ns;
}

/* Each broken rule is seen in one of these runs at least. */
static void test_mutants(void)
{
	static const char *const expected[FABRIC_MUTANTS] = {
		[FABRIC_NO_BOUND] = "with a delay of", [FABRIC_NO_WAIT] = "sum after version",
		[FABRIC_NO_AGAIN] = "has not ended",   [FABRIC_NO_GIVE_UP] = "has not ended",
		[FABRIC_TWICE] = "the gate refuses"};

	for (uint32_t mutant = FABRIC_SOUND + 1; mutant < FABRIC_MUTANTS; mutant++) {
		uint32_t seen = 0, right = 0;

		for (uint64_t seed = 1; seed <= 400; seed++) {
			struct fabric_config config = draw(seed);
			struct fabric_result result;

			config.mutant = (enum fabric_mutant)mutant;
			CHECK(fabric_world_run(&config, &result, NULL) == ESP_OK);
			seen += result.failure[0] != '\0';
			right += strstr(result.failure, expected[mutant]) != NULL;
		}
		printf("broken rule %u: %u of 400 runs fail, %u with '%s'\n", mutant, seen, right, expected[mutant]);
		CHECK(right > 0);
	}
}

static void test_same(void)
{
	const struct fabric_config config = draw(7);
	struct fabric_result one, two;

	memset(&one, 0, sizeof(one));
	memset(&two, 0, sizeof(two));
	CHECK(fabric_world_run(&config, &one, NULL) == ESP_OK && fabric_world_run(&config, &two, NULL) == ESP_OK);
	CHECK(one.ended_ns == two.ended_ns && one.applied == two.applied && one.delay_sum == two.delay_sum);
}

static void test_refused(void)
{
	struct fabric_config config = draw(1), bad;
	struct fabric_result result;
	struct error err;

	bad = config, bad.workers = 0;
	CHECK(fabric_world_run(&bad, &result, &err) == ESP_EINVAL);
	bad = config, bad.host_rate = 0;
	CHECK(fabric_world_run(&bad, &result, &err) == ESP_EINVAL);
	bad = config, bad.bytes = 0;
	CHECK(fabric_world_run(&bad, &result, &err) == ESP_EINVAL);
	bad = config, bad.updates = bad.end_ns = 0;
	CHECK(fabric_world_run(&bad, &result, &err) == ESP_EINVAL);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", 10000);
	struct totals totals = {0};

	test_refused();
	test_same();
	for (uint64_t seed = first; seed < first + count; seed++)
		play(seed, &totals);
	printf("%" PRIu64 " runs: %" PRIu64 " applied (%" PRIu64 " in %" PRIu64 " sums), %" PRIu64 " were announced again; %" PRIu64
	       " workers lost, %" PRIu64 " schedulers killed; the longest took %" PRIu64 " ms\n",
	       totals.runs, totals.applied, totals.summed, totals.sums, totals.again, totals.deaths, totals.restarts,
	       totals.longest_ns / NS_PER_MS);
	for (uint8_t end = 0; end < LEDGER_ENDS; end++)
		printf("%s %" PRIu64 "%s", ledger_end_name(end), totals.ends[end], end + 1 < LEDGER_ENDS ? ", " : "\n");
	test_mutants();
	return 0;
}
