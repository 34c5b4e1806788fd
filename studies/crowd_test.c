/*
 * Other traffic: its median is the documented one (docs/discovery-sim.md), independently in each direction, the
 * same from the same seed. And the distributions that it is drawn from.
 */
#include "studies/crowd.h"

#include <stdlib.h>

#include "base/check.h"
#include "studies/chance.h"
#include "studies/discover.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[count / 2];
}

static void test_shapes(uint64_t seed)
{
	enum { COUNT = 200000 };
	static double exponential[COUNT], lognormal[COUNT], pareto[COUNT];
	double sum = 0, square = 0, mean = 0;
	struct rng rng;

	chance_init(&rng, seed, 1);
	for (int i = 0; i < COUNT; i++) {
		double normal = chance_normal(&rng);

		sum += normal;
		square += normal * normal;
		mean += exponential[i] = chance_exponential(&rng);
		lognormal[i] = chance_lognormal(&rng, 0.7);
		pareto[i] = chance_pareto(&rng, 1.5, 100);
		CHECK(exponential[i] >= 0 && lognormal[i] > 0 && pareto[i] >= 1 && pareto[i] <= 100);
	}
	CHECK(fabs(sum / COUNT) < 0.02 && fabs(square / COUNT - 1) < 0.03);
	CHECK(fabs(mean / COUNT - 1) < 0.02 && fabs(median(exponential, COUNT) - 0.693) < 0.02);
	CHECK(fabs(median(lognormal, COUNT) - 1) < 0.02);
	CHECK(fabs(median(pareto, COUNT) - 1.587) < 0.02); /* 2^(1/1.5) */
}

/* The numbers of one purpose do not depend on another purpose's draws. */
static void test_purposes(void)
{
	struct rng one, two, again;

	chance_init(&one, 5, 1);
	chance_init(&two, 5, 2);
	chance_init(&again, 5, 1);
	uint64_t first = rng_next(&one);
	CHECK(first != rng_next(&two) && first == rng_next(&again));
}

static void test_crowd(void)
{
	const struct region_spec spec = discover_spec(discover_setting_find("region"));
	static double up[20 * 300];
	size_t count = 0, slow = 0, same = 0;
	struct error err = {0};

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct region region;
		struct crowd crowd, again;

		CHECK(region_init(&region, &spec, seed, &err) == ESP_OK);
		CHECK(crowd_init(&crowd, &region, seed, &err) == ESP_OK && crowd_init(&again, &region, seed, &err) == ESP_OK);
		for (uint32_t i = 2; i < crowd.links; i++) {
			CHECK(crowd.x[i] == again.x[i] && crowd.x[i] > 0);
			CHECK_U64(crowd.flows[i], (uint64_t)llround(crowd.x[i] * region.switches[i / 2].rate / spec.host_rate));
			if (i % 2 == 0)
				up[count++] = crowd.x[i];
			else
				same += crowd.x[i] == crowd.x[i - 1];
		}
		for (uint32_t i = 0; i < spec.machines; i++) {
			CHECK(crowd.host_share[i] == 1 || (crowd.host_share[i] >= 0.5 && crowd.host_share[i] <= 0.9));
			slow += crowd.host_share[i] < 1;
		}
		crowd_fini(&crowd);
		crowd_fini(&again);
		region_fini(&region);
	}
	CHECK(count > 1000 && fabs(median(up, count) - 1) < 0.1);
	CHECK(fabs((double)slow / (20 * 64) - 0.1) < 0.03);
	CHECK_U64(same, 0);
}

int main(int argc, char **argv)
{
	test_shapes(test_seed(argc, argv, 1));
	test_purposes();
	test_crowd();
	return 0;
}
