#include "base/check.h"
#include "tools/bench/hub_bound.h"

#define MODEL UINT64_C(45000000)

static bool near(double a, double b)
{
	return a > b * 0.999999 && a < b * 1.000001;
}

/* A worker's link sets the pace as long as the hub has a link for each worker; then the hub's does. */
static void test_hub(void)
{
	double goodput = bench_hub_bound_goodput(100000000), once = (double)MODEL / goodput;

	CHECK(near(goodput, 12.5e6 * 1448 / 1514));
	for (uint32_t workers = 1; workers <= 8; workers++)
		CHECK(near(bench_hub_bound_hub(MODEL, workers, 8, goodput), once));
	CHECK(near(bench_hub_bound_hub(MODEL, 8, 1, goodput), 8 * once));
	CHECK(near(bench_hub_bound_hub(MODEL, 8, 4, goodput), 2 * once));
}

/* 8 workers: 1.75 models each way, 1.75 times a hub's; a worker alone sends nothing. */
static void test_colocated(void)
{
	double goodput = bench_hub_bound_goodput(100000000), once = (double)MODEL / goodput;

	CHECK(near(bench_hub_bound_colocated(MODEL, 8, goodput), 1.75 * once));
	CHECK(near(bench_hub_bound_colocated(MODEL, 2, goodput), once));
	CHECK(bench_hub_bound_colocated(MODEL, 1, goodput) == 0);
}

int main(void)
{
	test_hub();
	test_colocated();
	return 0;
}
