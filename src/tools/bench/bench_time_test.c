#include "tools/bench/bench_time.h"

#include <math.h>

#include "base/check.h"

#define ROOM 5000

static double samples[ROOM], slowest[ROOM];

/*
 * Simulates calls of call_ns each, with meet_ns between the batches; batch number `hiccup` takes 10 ms more. Returns
 * the number of batches.
 */
static unsigned run(struct bench_pace *pace, uint64_t call_ns, uint64_t meet_ns, unsigned hiccup)
{
	uint64_t spent_ns = 0, calls;
	unsigned batches = 0;

	while ((calls = bench_pace_calls(pace)) > 0) {
		uint64_t elapsed_ns = calls * call_ns + (batches == hiccup ? 10000000 : 0);
		spent_ns += elapsed_ns + meet_ns;
		bench_pace_add(pace, elapsed_ns, 2 * elapsed_ns, spent_ns);
		CHECK(++batches < 100000);
	}
	return batches;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void start(struct bench_pace *pace, uint64_t wanted, uint64_t budget_ns)
{
	CHECK(bench_pace_capacity(wanted) <= ROOM);
	bench_pace_init(pace, wanted, budget_ns, samples, slowest, bench_pace_capacity(wanted));
}

static void test_long_calls(void)
{
	struct bench_pace pace;

	start(&pace, 20, 0);
	CHECK_U64(run(&pace, 80000, 0, UINT32_MAX), 21);
	CHECK(pace.calls == 1 && pace.count == 20);
	CHECK(near(samples[0], 80) && near(samples[19], 80) && near(slowest[7], 160));
}

static void test_short_calls(void)
{
	for (uint64_t call_ns = 13; call_ns < BENCH_SAMPLE_NS; call_ns = call_ns * 3 + 1) {
		struct bench_pace pace;
		start(&pace, 20, 0);
		unsigned batches = run(&pace, call_ns, 0, UINT32_MAX);
		CHECK(pace.count == 20 && batches <= 26);
		CHECK_MSG(pace.calls * call_ns >= BENCH_SAMPLE_NS, "%" PRIu64 " calls of %" PRIu64 " ns", pace.calls, call_ns);
		CHECK(pace.calls * call_ns <= 3 * BENCH_SAMPLE_NS);
		CHECK(near(samples[3], (double)call_ns / 1e3));
	}
}

static void test_no_time_at_all(void)
{
	struct bench_pace pace;

	start(&pace, 5, 0);
	run(&pace, 0, 0, UINT32_MAX);
	CHECK(pace.calls == BENCH_CALLS_MAX && pace.count == 5 && samples[4] == 0);
}

/* One slow batch at the wrong time does not make later batches too short. */
static void test_hiccup(void)
{
	for (unsigned hiccup = 0; hiccup < 6; hiccup++) {
		struct bench_pace pace;
		start(&pace, 20, 0);
		run(&pace, 700, 0, hiccup);
		CHECK_MSG(pace.calls * 700 >= BENCH_SAMPLE_NS, "%" PRIu64 " calls after batch %u", pace.calls, hiccup);
	}
}

static void test_budget(void)
{
	struct bench_pace pace;

	start(&pace, 20, 1000000000);
	run(&pace, 50000000, 0, UINT32_MAX); /* too slow for more than 20 samples in a second */
	CHECK(pace.count == 20 && pace.spent_ns >= 1000000000);
	start(&pace, 20, 1000000000);
	run(&pace, 700, 30000, UINT32_MAX);
	CHECK(pace.spent_ns >= 1000000000 && pace.spent_ns < 1100000000);
	CHECK(pace.count > 500 && pace.count <= 1000);
	start(&pace, 20, UINT64_C(1000000000000)); /* a thousand seconds: the arrays are full first */
	run(&pace, 1, 0, UINT32_MAX);
	CHECK(pace.count == pace.capacity);
}

static void test_stats(void)
{
	double one[] = {5}, two[] = {3, 1}, ten[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, eleven[11];
	struct bench_stats stats = bench_stats(one, 1);

	CHECK(stats.min == 5 && stats.p50 == 5 && stats.p90 == 5 && stats.max == 5);
	stats = bench_stats(two, 2);
	CHECK(stats.min == 1 && stats.p50 == 2 && stats.p90 == 3 && stats.max == 3);
	stats = bench_stats(ten, 10);
	CHECK(stats.min == 1 && stats.p50 == 5.5 && stats.p90 == 9 && stats.max == 10);
	for (int i = 0; i < 11; i++)
		eleven[i] = i;
	stats = bench_stats(eleven, 11);
	CHECK(stats.p50 == 5 && stats.p90 == 9 && stats.max == 10);
}

static void test_bandwidth(void)
{
	CHECK(near(bench_alg_bw(1048576, 354.9), 1048576 / 354.9 / 1e3));
	CHECK(bench_alg_bw(4, 0) == 0 && bench_alg_bw(0, 5) == 0);
	CHECK(near(bench_bus_factor(ESP_ALLREDUCE, 4), 1.5) && near(bench_bus_factor(ESP_ALLGATHER, 4), 0.75));
	CHECK(near(bench_bus_factor(ESP_REDUCE_SCATTER, 4), 0.75) && near(bench_bus_factor(ESP_ALLTOALL, 4), 0.75));
	CHECK(near(bench_bus_factor(ESP_GATHER, 4), 0.75) && near(bench_bus_factor(ESP_SCATTER, 4), 0.75));
	CHECK(bench_bus_factor(ESP_BROADCAST, 4) == 1 && bench_bus_factor(ESP_REDUCE, 4) == 1);
	CHECK(bench_bus_factor(ESP_BARRIER, 4) == 0 && bench_bus_factor(ESP_ALLREDUCE, 1) == 0);
}

int main(void)
{
	test_long_calls();
	test_short_calls();
	test_no_time_at_all();
	test_hiccup();
	test_budget();
	test_stats();
	test_bandwidth();
	return 0;
}
