/*
 * Average linkage beside one that looks at all clusters for every join.
 */
#include "network/discover/linkage.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES_MOST 40u

static void draw(struct matrix *matrix, uint32_t nodes, bool ties, struct rng *rng)
{
	struct error err;

	CHECK(matrix_init(matrix, nodes, &err) == ESP_OK);
	for (uint32_t i = 0; i < nodes; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, ties ? (double)rng_below(rng, 3) : 1 + rng_unit(rng));
}

static double mean_between(const struct matrix *matrix, const uint32_t *group_of, uint32_t a, uint32_t b)
{
	double sum = 0, pairs = 0;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < matrix->size; j++)
			if (i != j && group_of[i] == a && group_of[j] == b) {
				sum += matrix_get(matrix, i, j);
				pairs++;
			}
	return pairs > 0 ? sum / pairs : INFINITY;
}

/* The plain way: `groups` clusters are left in group_of. */
static void join_plainly(const struct matrix *matrix, uint32_t groups, uint32_t *group_of)
{
	for (uint32_t i = 0; i < matrix->size; i++)
		group_of[i] = i;
	for (uint32_t left = matrix->size; left > groups; left--) {
		uint32_t a = 0, b = 0;
		double least = INFINITY;

		for (uint32_t x = 0; x < matrix->size; x++)
			for (uint32_t y = 0; y < x; y++) {
				double mean = mean_between(matrix, group_of, x, y);
				if (mean < least) {
					least = mean;
					a = x;
					b = y;
				}
			}
		for (uint32_t i = 0; i < matrix->size; i++)
			group_of[i] = group_of[i] == a ? b : group_of[i];
	}
}

static void check_plain(uint32_t nodes, struct rng *rng)
{
	uint32_t groups = 1 + (uint32_t)rng_below(rng, nodes), group_of[NODES_MOST];
	struct linkage linkage;
	struct grouping cut, plain;
	struct matrix matrix;
	struct error err;

	draw(&matrix, nodes, false, rng);
	CHECK(discover_linkage_make(&matrix, &linkage, &err) == ESP_OK);
	CHECK(discover_linkage_cut(&linkage, groups, &cut, &err) == ESP_OK);
	join_plainly(&matrix, groups, group_of);
	CHECK(grouping_from(&plain, group_of, nodes, &err) == ESP_OK);
	CHECK_MSG(grouping_equal(&cut, &plain), "%u groups of %u hosts", groups, nodes);
	grouping_fini(&cut);
	grouping_fini(&plain);
	discover_linkage_fini(&linkage);
	matrix_fini(&matrix);
}

/* Every number of clusters can be cut, also where many distances are equal, and 0; how clear they are is a share. */
static void check_ties(uint32_t nodes, struct rng *rng)
{
	double apart[NODES_MOST + 1];
	struct linkage linkage;
	struct matrix matrix;
	struct error err;

	draw(&matrix, nodes, true, rng);
	CHECK(discover_linkage_make(&matrix, &linkage, &err) == ESP_OK);
	CHECK(discover_linkage_apart(&linkage, &matrix, apart, &err) == ESP_OK);
	for (uint32_t groups = 1; groups <= nodes; groups++) {
		struct grouping cut;

		CHECK(discover_linkage_cut(&linkage, groups, &cut, &err) == ESP_OK);
		CHECK_U64(cut.count, groups);
		CHECK(apart[groups] >= -1 && apart[groups] <= 1);
		grouping_fini(&cut);
	}
	CHECK(apart[nodes] == 0 && apart[1] == 0);
	discover_linkage_fini(&linkage);
	matrix_fini(&matrix);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t nodes = 1; nodes <= NODES_MOST; nodes += 1 + nodes / 6) {
		check_plain(nodes, &rng);
		check_ties(nodes, &rng);
	}
	return 0;
}
