#include "base/check.h"
#include "base/clock.h"
#include "tools/bench/fabric_plan.h"

static bool near(double a, double b)
{
	return a > b * 0.999999 && a < b * 1.000001;
}

/* The cluster of the aim: the hub's link at a quarter, a step of 2.25 times what the model takes on a worker's link. */
static struct fabric_plan plan_of(uint32_t workers)
{
	return (struct fabric_plan){.workers = workers,
	                            .delay_bound = 2 * workers,
	                            .rate = 10000000,
	                            .hub_rate = 2500000,
	                            .bytes = 1000000,
	                            .compute_ns = 225 * NS_PER_MS,
	                            .batch_ns = 20 * NS_PER_MS,
	                            .weather = &fabric_weathers[0],
	                            .stragglers = &fabric_stragglers[0],
	                            .period_ns = 5 * NS_PER_S,
	                            .seed = 1,
	                            .warm_ns = 10 * NS_PER_S,
	                            .window_ns = 30 * NS_PER_S};
}

/* 16 workers: 6.24 times plain asynchronous at most. */
static void test_bounds(void)
{
	const struct fabric_plan plan = plan_of(16);
	double best = bench_fabric_plan_bound(&plan, FABRIC_PLAN_BEST).per_second;
	double plain = bench_fabric_plan_bound(&plan, FABRIC_PLAN_PLAIN).per_second;

	CHECK(near(best, 16 / (0.225 + 0.4 + 0.4)));
	CHECK(near(plain, 2.5));
	CHECK(best / plain > 6.2 && best / plain < 6.3);
	CHECK(near(bench_fabric_plan_bound(&plan, FABRIC_PLAN_RING).per_second, 16 / (0.225 + 0.1 * 2 * 15 / 16)));
}

/* A worker alone is not limited by others: the hub's link has room for it. */
static void test_alone(void)
{
	struct fabric_plan plan = plan_of(1);

	CHECK(near(bench_fabric_plan_bound(&plan, FABRIC_PLAN_PLAIN).per_second, 1 / 1.025));
	plan.stragglers = &fabric_stragglers[2]; /* 10 % of steps take four times as long */
	CHECK(near(bench_fabric_plan_bound(&plan, FABRIC_PLAN_PLAIN).per_second, 1 / (0.225 * 1.3 + 0.8)));
}

/* Half of the rate for part of the time; the mean is of those periods that the window has. */
static void test_weather(void)
{
	struct fabric_plan plan = plan_of(4);
	double sum = 0;

	plan.hub_rate = 10000000;
	plan.weather = &fabric_weathers[3];
	for (uint64_t period = 2; period < 8; period++) {
		for (uint32_t worker = 0; worker < plan.workers; worker++)
			sum += 1 / (0.225 + 0.2 / bench_fabric_plan_part(&plan, worker, period)) / 6;
	}
	CHECK(near(bench_fabric_plan_bound(&plan, FABRIC_PLAN_BEST).per_second, sum));
}

/* No way is faster than its bound, and the scheduler's are faster than plain. */
static void test_model(void)
{
	const struct fabric_plan plan = plan_of(16);
	double per_second[FABRIC_PLAN_WAYS];

	for (uint32_t way = 0; way < FABRIC_PLAN_WAYS; way++) {
		struct fabric_result result;
		struct error err;

		CHECK(bench_fabric_plan_model(&plan, (enum fabric_plan_way)way, &result, &err) == ESP_OK);
		per_second[way] = result.per_second;
		CHECK(result.per_second > 0);
		CHECK(result.per_second < 1.04 * bench_fabric_plan_bound(&plan, (enum fabric_plan_way)way).per_second);
	}
	CHECK(per_second[FABRIC_PLAN_BEST] > 3 * per_second[FABRIC_PLAN_PLAIN]);
	CHECK(per_second[FABRIC_PLAN_PAPER] > per_second[FABRIC_PLAN_PLAIN]);
}

int main(void)
{
	test_bounds();
	test_alone();
	test_weather();
	test_model();
	return 0;
}
