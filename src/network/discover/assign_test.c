#include "network/discover/assign.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES_MAX 9u
#define GROUPS_MAX 4u
#define MANY_NODES 120u
#define MANY_GROUPS 12u

static double sum_of(const double *cost, uint32_t nodes, const uint32_t *group_of)
{
	double sum = 0;

	for (uint32_t i = 0; i < nodes; i++)
		sum += cost[group_of[i] * nodes + i];
	return sum;
}

static void check_sizes(const uint32_t *group_of, uint32_t nodes, uint32_t groups, uint32_t least, uint32_t *sizes)
{
	for (uint32_t group = 0; group < groups; group++)
		sizes[group] = 0;
	for (uint32_t i = 0; i < nodes; i++) {
		CHECK(group_of[i] < groups);
		sizes[group_of[i]]++;
	}
	for (uint32_t group = 0; group < groups; group++)
		CHECK(sizes[group] >= least);
}

/* The minimum over all assignments. */
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
			best = fmin(best, sum_of(cost, nodes, group_of));
		while (node < nodes && ++group_of[node] == groups)
			group_of[node++] = 0;
		if (node == nodes)
			return best;
	}
}

/* One group, any of them, is cheap for all nodes, so that the others are below the minimum. */
static void fill_crowded(struct rng *rng, double *cost, uint32_t nodes, uint32_t groups, int turn)
{
	uint32_t cheap = (uint32_t)rng_below(rng, groups);
	bool coarse = turn % 2 == 0; /* integers: many costs are equal */

	for (uint32_t i = 0; i < nodes * groups; i++)
		cost[i] = (coarse ? (double)rng_below(rng, 5) : rng_unit(rng)) + (i / nodes != cheap ? turn % 4 : 0);
}

/*
 * Groups along a line and most nodes at one end of it. With squared distances short steps are cheapest: a group
 * at the other end is filled by a chain through all groups, each of which passes one node on. The groups are in
 * random or reversed order, so that chains also run against their numbers.
 */
static void fill_street(struct rng *rng, double *cost, uint32_t nodes, uint32_t groups, bool backwards)
{
	double centre[MANY_GROUPS] = {0};

	for (uint32_t group = 0; group < groups; group++) {
		uint32_t other = backwards ? group : (uint32_t)rng_below(rng, group + 1);

		centre[group] = centre[other];
		centre[other] = groups - group;
	}
	for (uint32_t node = 0; node < nodes; node++) {
		double at = 1 + rng_unit(rng) * rng_unit(rng) * groups;

		for (uint32_t group = 0; group < groups; group++)
			cost[group * nodes + node] = (at - centre[group]) * (at - centre[group]);
	}
}

static void test_small(struct rng *rng)
{
	double cost[NODES_MAX * GROUPS_MAX] = {0};
	uint32_t group_of[NODES_MAX], sizes[GROUPS_MAX];
	struct error err;

	for (int turn = 0; turn < 800; turn++) {
		uint32_t groups = 1 + (uint32_t)rng_below(rng, GROUPS_MAX);
		uint32_t nodes = groups + (uint32_t)rng_below(rng, (groups == GROUPS_MAX ? 8 : NODES_MAX) - groups + 1);
		uint32_t least = (uint32_t)rng_below(rng, nodes / groups + 1);

		if (turn % 8 < 4)
			fill_crowded(rng, cost, nodes, groups, turn);
		else
			fill_street(rng, cost, nodes, groups, turn % 8 < 6);
		CHECK(discover_assign_least(cost, nodes, groups, least, group_of, &err) == ESP_OK);
		check_sizes(group_of, nodes, groups, least, sizes);
		double sum = sum_of(cost, nodes, group_of), best = brute_force(cost, nodes, groups, least);
		CHECK_MSG(fabs(sum - best) < 1e-9, "turn %d: %u nodes, %u groups, at least %u: %g, and %g is there", turn,
		          nodes, groups, least, sum, best);
	}
}

/*
 * For sizes at which enumeration is impossible. An assignment is optimal if and only if no cycle of moves has a
 * negative cost; a group above the minimum may also give a node away, which is a cycle through an extra group
 * that all groups can leave and those above the minimum can enter at no cost. All pairs' shortest chains show
 * it (Floyd-Warshall).
 */
static double best_cycle(const double *cost, uint32_t nodes, uint32_t groups, const uint32_t *group_of,
                         const uint32_t *sizes, uint32_t least)
{
	static double reach[MANY_GROUPS + 1][MANY_GROUPS + 1];
	double best = 0;

	for (uint32_t a = 0; a <= groups; a++) {
		for (uint32_t b = 0; b <= groups; b++)
			reach[a][b] = a == b ? 0 : a == groups ? (sizes[b] > least ? 0 : INFINITY) : b == groups ? 0 : INFINITY;
	}
	for (uint32_t node = 0; node < nodes; node++) {
		uint32_t from = group_of[node];

		for (uint32_t to = 0; to < groups; to++)
			reach[from][to] = fmin(reach[from][to], cost[to * nodes + node] - cost[from * nodes + node]);
	}
	for (uint32_t k = 0; k <= groups; k++) {
		for (uint32_t a = 0; a <= groups; a++) {
			for (uint32_t b = 0; b <= groups; b++)
				reach[a][b] = fmin(reach[a][b], reach[a][k] + reach[k][b]);
		}
	}
	for (uint32_t a = 0; a <= groups; a++)
		best = fmin(best, reach[a][a]);
	return best;
}

static void test_many(struct rng *rng)
{
	static double cost[MANY_NODES * MANY_GROUPS];
	uint32_t group_of[MANY_NODES], sizes[MANY_GROUPS];
	struct error err;

	for (int turn = 0; turn < 60; turn++) {
		uint32_t groups = 2 + (uint32_t)rng_below(rng, MANY_GROUPS - 1);
		uint32_t nodes = 4 * groups + (uint32_t)rng_below(rng, MANY_NODES - 4 * groups + 1),
		    least = nodes / groups - (uint32_t)rng_below(rng, 3);

		if (turn % 4 == 0)
			fill_crowded(rng, cost, nodes, groups, turn / 4);
		else
			fill_street(rng, cost, nodes, groups, turn % 4 < 3);
		CHECK(discover_assign_least(cost, nodes, groups, least, group_of, &err) == ESP_OK);
		check_sizes(group_of, nodes, groups, least, sizes);
		double worth = best_cycle(cost, nodes, groups, group_of, sizes, least);
		CHECK_MSG(worth > -1e-9, "turn %d: %u nodes, %u groups, at least %u: a ring of moves is worth %g", turn, nodes,
		          groups, least, -worth);
	}
}

int main(int argc, char **argv)
{
	double cost[10] = {0};
	uint32_t group_of[5];
	struct error err;
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_small(&rng);
	test_many(&rng);
	CHECK(discover_assign_least(cost, 5, 2, 3, group_of, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "5 nodes do not make 2 groups of at least 3");
	CHECK(discover_assign_least(cost, 5, 0, 0, group_of, &err) == ESP_EINVAL);
	return 0;
}
