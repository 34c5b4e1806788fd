#include "rank/rail/bandwidth.h"

#include <assert.h>

#include "base/check.h"
#include "base/rng.h"

static void one_rail(void)
{
	struct gauge gauge;

	gauge_init(&gauge, 3);
	CHECK_U64(gauge.lanes, 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(gauge.lane_order[i] == i && gauge.lane_weights[i] == gauge.lane_weights[0]);
}

/* The fast rail is the second: its lane goes first, and what one lane alone does goes there. */
static void fast_one_first(void)
{
	struct gauge gauge;

	gauge_init(&gauge, 2);
	gauge.weights[0] = 6;
	gauge.weights[1] = 64;
	gauge_order(&gauge, 2, 2);
	CHECK(gauge.lanes == 2 && gauge.lane_order[0] == 1 && gauge.lane_order[1] == 0);
	CHECK(gauge.lane_weights[0] * 6 == gauge.lane_weights[1] * 64);
}

static void dead_one(void)
{
	struct gauge gauge;

	gauge_init(&gauge, 5);
	gauge.weights[0] = 64;
	gauge.weights[1] = 0;
	gauge_order(&gauge, 5, 2);
	CHECK(gauge.lanes == 3 && gauge.lane_order[0] == 0 && gauge.lane_order[1] == 2 && gauge.lane_order[2] == 4);
	gauge.weights[0] = 0;
	gauge_order(&gauge, 5, 2);
	CHECK_U64(gauge.lanes, 0);
}

/* Whatever there is: every lane of a rail with weight once, and each rail its share. */
static void proportions(struct rng *rng)
{
	struct gauge gauge;
	uint32_t rails = 1 + (uint32_t)rng_below(rng, RAILS_MOST), lanes = rails + (uint32_t)rng_below(rng, GAUGE_LANES - rails + 1);
	uint64_t sums[RAILS_MOST] = {0};
	bool seen[GAUGE_LANES] = {0};

	assert(rails > 0);
	gauge_init(&gauge, lanes);
	for (uint32_t i = 0; i < rails; i++)
		gauge.weights[i] = (uint32_t)rng_below(rng, 65);
	gauge_order(&gauge, lanes, rails);
	for (uint32_t i = 0; i < gauge.lanes; i++) {
		uint32_t lane = gauge.lane_order[i];

		CHECK(lane < lanes && !seen[lane] && gauge.weights[lane % rails] > 0);
		seen[lane] = true;
		sums[lane % rails] += gauge.lane_weights[i];
		if (i > 0)
			CHECK(gauge.lane_order[i - 1] / rails <= lane / rails);
	}
	for (uint32_t lane = 0; lane < lanes; lane++)
		CHECK(seen[lane] == (gauge.weights[lane % rails] > 0));
	for (uint32_t i = 0; i < rails; i++)
		CHECK(sums[i] <= gauge.weights[i] * 10080u && sums[i] + lanes > gauge.weights[i] * 10080u);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	one_rail();
	fast_one_first();
	dead_one();
	for (unsigned i = 0; i < 1000; i++)
		proportions(&rng);
	return 0;
}
