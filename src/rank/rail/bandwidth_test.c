#include "rank/rail/bandwidth.h"

#include <assert.h>

#include "base/check.h"
#include "base/rng.h"

static void one_rail(void)
{
	struct bandwidth bandwidth;

	bandwidth_init(&bandwidth, 3);
	CHECK_U64(bandwidth.lanes, 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(bandwidth.lane_order[i] == i && bandwidth.lane_weights[i] == bandwidth.lane_weights[0]);
}

/* The second rail is the faster one: its lane comes first, and a call on one lane takes it. */
static void fast_one_first(void)
{
	struct bandwidth bandwidth;

	bandwidth_init(&bandwidth, 2);
	bandwidth.weights[0] = 6;
	bandwidth.weights[1] = 64;
	bandwidth_order(&bandwidth, 2, 2);
	CHECK(bandwidth.lanes == 2 && bandwidth.lane_order[0] == 1 && bandwidth.lane_order[1] == 0);
	CHECK(bandwidth.lane_weights[0] * 6 == bandwidth.lane_weights[1] * 64);
}

static void dead_one(void)
{
	struct bandwidth bandwidth;

	bandwidth_init(&bandwidth, 5);
	bandwidth.weights[0] = 64;
	bandwidth.weights[1] = 0;
	bandwidth_order(&bandwidth, 5, 2);
	CHECK(bandwidth.lanes == 3 && bandwidth.lane_order[0] == 0 && bandwidth.lane_order[1] == 2 &&
	      bandwidth.lane_order[2] == 4);
	bandwidth.weights[0] = 0;
	bandwidth_order(&bandwidth, 5, 2);
	CHECK_U64(bandwidth.lanes, 0);
}

/* For any weights: every lane of a rail with weight comes once, and each rail gets its share. */
static void proportions(struct rng *rng)
{
	struct bandwidth bandwidth;
	uint32_t rails = 1 + (uint32_t)rng_below(rng, RAILS_MOST);
	uint32_t lanes = rails + (uint32_t)rng_below(rng, BANDWIDTH_LANES - rails + 1);
	uint64_t sums[RAILS_MOST] = {0};
	bool seen[BANDWIDTH_LANES] = {0};

	assert(rails > 0);
	bandwidth_init(&bandwidth, lanes);
	for (uint32_t i = 0; i < rails; i++)
		bandwidth.weights[i] = (uint32_t)rng_below(rng, 65);
	bandwidth_order(&bandwidth, lanes, rails);
	for (uint32_t i = 0; i < bandwidth.lanes; i++) {
		uint32_t lane = bandwidth.lane_order[i];

		CHECK(lane < lanes && !seen[lane] && bandwidth.weights[lane % rails] > 0);
		seen[lane] = true;
		sums[lane % rails] += bandwidth.lane_weights[i];
		if (i > 0)
			CHECK(bandwidth.lane_order[i - 1] / rails <= lane / rails);
	}
	for (uint32_t lane = 0; lane < lanes; lane++)
		CHECK(seen[lane] == (bandwidth.weights[lane % rails] > 0));
	for (uint32_t i = 0; i < rails; i++)
		CHECK(sums[i] <= bandwidth.weights[i] * 10080u && sums[i] + lanes > bandwidth.weights[i] * 10080u);
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
