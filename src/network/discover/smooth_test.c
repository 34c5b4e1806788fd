/*
 * smooth_test.c - the part that groups and nodes explain is kept; the noise of single pairs is reduced; sums
 * are kept.
 */
#include "network/discover/smooth.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES 24u
#define GROUPS 4u

struct rig {
	struct matrix truth, noisy, smooth;
	struct grouping grouping;
};

/* Groups of unequal sizes, each pair of groups with its own distance; some nodes are slow. */
static void make(struct rig *rig, struct rng *rng, double noise)
{
	double levels[GROUPS][GROUPS], own[NODES];
	uint32_t group_of[NODES];
	struct error err;

	for (uint32_t a = 0; a < GROUPS; a++) {
		for (uint32_t b = 0; b <= a; b++)
			levels[a][b] = levels[b][a] = (a == b ? 1 : 3) + rng_unit(rng);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		group_of[i] = i < GROUPS ? i : (uint32_t)rng_below(rng, GROUPS - 1); /* the last has one member */
		own[i] = rng_below(rng, 6) == 0 ? 2 : 1;
	}
	CHECK(grouping_from(&rig->grouping, group_of, NODES, &err) == ESP_OK);
	CHECK(matrix_init(&rig->truth, NODES, &err) == ESP_OK && matrix_init(&rig->noisy, NODES, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double far = levels[group_of[i]][group_of[j]] * own[i] * own[j] * 1e-9;

			matrix_set(&rig->truth, i, j, far);
			matrix_set(&rig->noisy, i, j, far * (1 - noise + 2 * noise * rng_unit(rng)));
		}
	}
}

static void drop(struct rig *rig)
{
	matrix_fini(&rig->truth);
	matrix_fini(&rig->noisy);
	matrix_fini(&rig->smooth);
	grouping_fini(&rig->grouping);
}

/* The mean relative error of the pairs. */
static double off(const struct matrix *truth, const struct matrix *from)
{
	double sum = 0;

	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++)
			sum += fabs(matrix_get(from, i, j) / matrix_get(truth, i, j) - 1);
	}
	return sum / (NODES * (NODES - 1) / 2.0);
}

static double row_sum(const struct matrix *matrix, uint32_t i)
{
	double sum = 0;

	for (uint32_t j = 0; j < NODES; j++)
		sum += matrix_get(matrix, i, j);
	return sum;
}

static void test_exact(struct rng *rng)
{
	struct rig rig = {0};
	struct error err;

	make(&rig, rng, 0);
	for (uint32_t i = 5; i < NODES; i += 3)
		matrix_set(&rig.noisy, i, i - 1, NAN); /* unknown, but predictable */
	CHECK(discover_smooth_by_groups(&rig.noisy, &rig.grouping, &rig.smooth, &err) == ESP_OK);
	CHECK(matrix_check(&rig.smooth, &err) == ESP_OK);
	CHECK_MSG(off(&rig.truth, &rig.smooth) < 0.01, "%g", off(&rig.truth, &rig.smooth));
	drop(&rig);
}

static void test_noise(struct rng *rng)
{
	struct rig rig = {0};
	struct error err;

	make(&rig, rng, 0.5);
	CHECK(discover_smooth_by_groups(&rig.noisy, &rig.grouping, &rig.smooth, &err) == ESP_OK);
	CHECK_MSG(off(&rig.truth, &rig.smooth) < 0.6 * off(&rig.truth, &rig.noisy), "%g of %g",
	          off(&rig.truth, &rig.smooth), off(&rig.truth, &rig.noisy));
	for (uint32_t i = 0; i < NODES; i++)
		CHECK(fabs(row_sum(&rig.smooth, i) / row_sum(&rig.noisy, i) - 1) < 0.02);
	drop(&rig);
}

/* Nothing is known between two groups, or at all. */
static void test_unknown(void)
{
	const uint32_t group_of[] = {0, 0, 1, 1};
	struct matrix matrix, smooth;
	struct grouping grouping;
	struct error err;

	CHECK(grouping_from(&grouping, group_of, 4, &err) == ESP_OK && matrix_init(&matrix, 4, &err) == ESP_OK);
	CHECK(discover_smooth_by_groups(&matrix, &grouping, &smooth, &err) == ESP_OK);
	CHECK(isnan(matrix_get(&smooth, 0, 1)) && isnan(matrix_get(&smooth, 0, 2)) && matrix_get(&smooth, 3, 3) == 0);
	matrix_fini(&smooth);
	matrix_set(&matrix, 0, 1, 2);
	matrix_set(&matrix, 2, 3, 3);
	CHECK(discover_smooth_by_groups(&matrix, &grouping, &smooth, &err) == ESP_OK);
	CHECK(fabs(matrix_get(&smooth, 0, 1) - 2) < 1e-9 && fabs(matrix_get(&smooth, 3, 2) - 3) < 1e-9 &&
	      isnan(matrix_get(&smooth, 1, 3)));
	matrix_fini(&smooth);
	matrix_fini(&matrix);
	grouping_fini(&grouping);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (int round = 0; round < 50; round++) {
		test_exact(&rng);
		test_noise(&rng);
	}
	test_unknown();
	return 0;
}
