#include "network/discover/cluster.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES 24u

static void test_least(void)
{
	CHECK(discover_cluster_least(16, 4, 1) == 4 && discover_cluster_least(16, 4, 2) == 2 &&
	      discover_cluster_least(17, 4, 1) == 4);
	CHECK(discover_cluster_least(8, 3, 2) == 1 && discover_cluster_least(8, 4, 1.5) == 1 &&
	      discover_cluster_least(3, 3, 2) == 1);
}

/* Three clusters of unequal size, far from each other: found unless the minimum forbids it. */
static void test_heaps(uint64_t seed)
{
	static const double clusters[3][2] = {{0, 0}, {10, 0}, {0, 10}};
	double points[NODES][2];
	uint32_t cluster_of[NODES], sizes[3];
	struct grouping grouping, truth;
	struct error err;
	struct rng rng;
	double inertia;

	rng_init(&rng, seed);
	for (uint32_t i = 0; i < NODES; i++) {
		cluster_of[i] = i % 8 < 4 ? 0 : i % 8 < 7 ? 1 : 2; /* 12, 9, 3 */
		points[i][0] = clusters[cluster_of[i]][0] + rng_unit(&rng);
		points[i][1] = clusters[cluster_of[i]][1] + rng_unit(&rng);
	}
	CHECK(grouping_from(&truth, cluster_of, NODES, &err) == ESP_OK);
	for (uint64_t turn = 0; turn < 20; turn++) {
		struct cluster_options options = {.groups = 3, .least = turn % 2 ? 1 : 3, .seed = seed + turn};

		CHECK(discover_cluster_points(&points[0][0], NODES, 2, &options, &grouping, &inertia, &err) == ESP_OK);
		CHECK_MSG(grouping_equal(&grouping, &truth), "turn %llu", (unsigned long long)turn);
		CHECK(inertia < NODES && fabs(inertia - discover_cluster_inertia(&points[0][0], 2, &grouping)) < 1e-9);
		grouping_fini(&grouping);
		options.least = 8; /* the smallest cluster gets five points of the others */
		CHECK(discover_cluster_points(&points[0][0], NODES, 2, &options, &grouping, &inertia, &err) == ESP_OK);
		grouping_sizes(&grouping, sizes);
		CHECK(grouping.count == 3 && sizes[0] == 8 && sizes[1] == 8 && sizes[2] == 8 && inertia > 100);
		grouping_fini(&grouping);
	}
	grouping_fini(&truth);
}

/* Any points, also all equal: the requested number of groups, large enough, the same for the same seed. */
static void test_any(uint64_t seed)
{
	double points[NODES * 3];
	uint32_t sizes[NODES];
	struct rng rng;
	struct error err;

	rng_init(&rng, seed);
	for (int turn = 0; turn < 200; turn++) {
		uint32_t nodes = 1 + (uint32_t)rng_below(&rng, NODES), groups = 1 + (uint32_t)rng_below(&rng, nodes);
		struct cluster_options options = {.groups = groups, .least = (uint32_t)rng_below(&rng, nodes / groups + 1),
		                                  .seed = seed + (uint64_t)turn};
		struct grouping grouping, again;

		for (uint32_t i = 0; i < nodes * 3; i++)
			points[i] = turn % 4 == 0 ? 1 : (double)rng_below(&rng, 4);
		CHECK_MSG(discover_cluster_points(points, nodes, 3, &options, &grouping, NULL, &err) == ESP_OK, "%s", err.text);
		CHECK(discover_cluster_points(points, nodes, 3, &options, &again, NULL, &err) == ESP_OK &&
		      grouping_equal(&grouping, &again));
		CHECK_U64(grouping.count, groups);
		grouping_sizes(&grouping, sizes);
		for (uint32_t group = 0; group < groups; group++)
			CHECK(sizes[group] >= options.least && sizes[group] >= 1);
		grouping_fini(&grouping);
		grouping_fini(&again);
	}
	struct grouping none;
	CHECK(discover_cluster_points(points, 4, 3, &(struct cluster_options){.groups = 5}, &none, NULL, &err) ==
	      ESP_EINVAL);
	CHECK(discover_cluster_points(points, 4, 3, &(struct cluster_options){.groups = 2, .least = 3}, &none, NULL,
	                              &err) == ESP_EINVAL);
	CHECK_STR(err.text, "4 nodes do not make 2 groups of at least 3");
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	test_least();
	test_heaps(seed);
	test_any(seed);
	return 0;
}
