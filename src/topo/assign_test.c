#include "topo/assign.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES_MAX 9u
#define GROUPS_MAX 4u

static double sum_of(const double *cost, uint32_t nodes, uint32_t groups, const uint32_t *group_of)
{
	double sum = 0;

	for (uint32_t i = 0; i < nodes; i++)
		sum += cost[i * groups + group_of[i]];
	return sum;
}

/* Over all assignments there are. */
static double brute_force(const double *cost, uint32_t nodes, uint32_t groups, uint32_t least)
{
	uint32_t group_of[NODES_MAX] = {0};
	double best = INFINITY;

	for (;;) {
		uint32_t sizes[GROUPS_MAX] = {0}, node = 0, group = 0;

		for (uint32_t i = 0; i < nodes; i++)
			sizes[group_of[i]]++;
		while (group < groups && sizes[group] >= least)
			group++;
		if (group == groups)
			best = fmin(best, sum_of(cost, nodes, groups, group_of));
		while (node < nodes && ++group_of[node] == groups)
			group_of[node++] = 0;
		if (node == nodes)
			return best;
	}
}

int main(int argc, char **argv)
{
	double cost[NODES_MAX * GROUPS_MAX] = {0};
	uint32_t group_of[NODES_MAX] = {0};
	struct error err;
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (int turn = 0; turn < 400; turn++) {
		uint32_t groups = 1 + (uint32_t)rng_below(&rng, GROUPS_MAX);
		uint32_t nodes = groups + (uint32_t)rng_below(&rng, (groups == GROUPS_MAX ? 8 : NODES_MAX) - groups + 1);
		uint32_t least = (uint32_t)rng_below(&rng, nodes / groups + 1), sizes[GROUPS_MAX] = {0};
		bool coarse = turn % 2 == 0; /* whole numbers: many are equal */

		for (uint32_t i = 0; i < nodes * groups; i++) /* the first group is cheap for all, so that others come short */
			cost[i] = (coarse ? (double)rng_below(&rng, 5) : rng_unit(&rng)) + (i % groups > 0 ? turn % 4 : 0);
		CHECK(assign_least(cost, nodes, groups, least, group_of, &err) == ESP_OK);
		for (uint32_t i = 0; i < nodes; i++)
			sizes[group_of[i]]++;
		for (uint32_t group = 0; group < groups; group++)
			CHECK(sizes[group] >= least);
		double sum = sum_of(cost, nodes, groups, group_of), best = brute_force(cost, nodes, groups, least);
		CHECK_MSG(fabs(sum - best) < 1e-9, "turn %d: %u nodes, %u groups, at least %u: %g, and %g is there", turn, nodes, groups, least, sum,
		          best);
	}
	CHECK(assign_least(cost, 5, 2, 3, group_of, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "5 nodes do not make 2 groups of at least 3");
	CHECK(assign_least(cost, 5, 0, 0, group_of, &err) == ESP_EINVAL);
	return 0;
}
