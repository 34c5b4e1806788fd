/*
 * The search by swaps: sizes stay in their bounds, the mean distance inside never rises, no single swap or move is left
 * that would help; and distances that no neighbour confirms.
 */
#include "network/discover/swaps.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"
#include "network/discover/confirm.h"

static void draw(struct matrix *matrix, uint32_t nodes, struct rng *rng)
{
	struct error err;

	CHECK(matrix_init(matrix, nodes, &err) == ESP_OK);
	for (uint32_t i = 0; i < nodes; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, 1 + rng_unit(rng));
}

static void check_sizes(const struct grouping *grouping, struct swaps_bounds bounds)
{
	uint32_t sizes[64];

	grouping_sizes(grouping, sizes);
	for (uint32_t group = 0; group < grouping->count; group++)
		CHECK_MSG(sizes[group] >= bounds.least && sizes[group] <= bounds.most, "a group of %u, of %u to %u",
		          sizes[group], bounds.least, bounds.most);
}

/* Swaps every two hosts in turn: none of it helps. */
static void check_settled(const struct matrix *matrix, struct grouping *grouping)
{
	double inside = discover_swaps_inside(matrix, grouping);

	for (uint32_t i = 0; i < grouping->nodes; i++)
		for (uint32_t j = 0; j < i; j++) {
			uint32_t a = grouping->group_of[i], b = grouping->group_of[j];

			grouping->group_of[i] = b;
			grouping->group_of[j] = a;
			CHECK(discover_swaps_inside(matrix, grouping) >= inside * (1 - 1e-6));
			grouping->group_of[i] = a;
			grouping->group_of[j] = b;
		}
}

static void check_search(uint32_t nodes, uint32_t groups, double elasticity, struct rng *rng)
{
	const struct swaps_bounds bounds = discover_swaps_bounds(nodes, groups, elasticity);
	struct grouping grouping;
	struct matrix matrix;
	struct error err;

	draw(&matrix, nodes, rng);
	CHECK(grouping_random(&grouping, nodes, groups, rng_below(rng, 1000), &err) == ESP_OK);
	for (uint32_t i = groups; i < nodes / 2; i++) /* one group gets much too large */
		grouping.group_of[i] = grouping.group_of[0];
	struct grouping uneven;
	CHECK(grouping_from(&uneven, grouping.group_of, nodes, &err) == ESP_OK);
	if (uneven.count == groups) {
		CHECK(discover_swaps_fit(&matrix, bounds, &uneven, &err) == ESP_OK);
		check_sizes(&uneven, bounds);
		double before = discover_swaps_inside(&matrix, &uneven);
		CHECK(discover_swaps_polish(&matrix, bounds, &uneven, &err) == ESP_OK);
		CHECK(uneven.count == groups && discover_swaps_inside(&matrix, &uneven) <= before * (1 + 1e-9));
		check_sizes(&uneven, bounds);
		check_settled(&matrix, &uneven);
	}
	grouping_fini(&grouping);
	grouping_fini(&uneven);
	matrix_fini(&matrix);
}

/* Two racks of four. A late pair and one that is missing get what their neighbours have; what is far stays far. */
static void test_confirm(void)
{
	struct matrix matrix, out;
	struct error err;

	CHECK(matrix_init(&matrix, 8, &err) == ESP_OK);
	CHECK(discover_confirm(&matrix, &out, &err) == ESP_EINVAL); /* nothing is known */
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, i / 4 == j / 4 ? 20 : 5000);
	matrix_set(&matrix, 0, 1, 900);
	matrix_set(&matrix, 5, 6, NAN);
	matrix_set(&matrix, 2, 7, NAN);
	CHECK(discover_confirm(&matrix, &out, &err) == ESP_OK);
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t j = 0; j < i; j++)
			CHECK_MSG(matrix_get(&out, i, j) == (i / 4 == j / 4 ? 20 : 5000), "%u and %u: %g", i, j,
			          matrix_get(&out, i, j));
	matrix_fini(&matrix);
	matrix_fini(&out);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t run = 0; run < 30; run++)
		check_search(12 + (uint32_t)rng_below(&rng, 30), 2 + (uint32_t)rng_below(&rng, 4),
		             run % 3 == 0 ? 0 : 1 + rng_unit(&rng), &rng);
	test_confirm();
	return 0;
}
