#include "network/discover/quality.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

/* ---- physical affinity ---- */

static void test_paia(void)
{
	/* a and b share a rack, c their row, d only the region */
	uint32_t place[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 2};
	struct racks racks = {.nodes = 4, .levels = 3, .place = place};
	struct matrix matrix;
	struct error err;
	uint64_t triplets;

	CHECK(matrix_init(&matrix, 4, &err) == ESP_OK);
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, 3 - racks_common(&racks, i, j));
	}
	/* Observer a: b before c before d: 3. b likewise. c: a and b equal, each before d: 2. d: all equal: 0. */
	CHECK(discover_quality_paia(&matrix, &racks, &triplets) == 1 && triplets == 8);
	matrix_set(&matrix, 0, 2, 5); /* a finds c behind d; c finds a behind d */
	CHECK(fabs(discover_quality_paia(&matrix, &racks, &triplets) - 6.0 / 8) < 1e-12 && triplets == 8);
	matrix_set(&matrix, 0, 2, 3); /* as far as d, which is d's distance to both: a tie is wrong */
	matrix_set(&matrix, 0, 3, 3);
	matrix_set(&matrix, 2, 3, 3);
	CHECK(fabs(discover_quality_paia(&matrix, &racks, &triplets) - 6.0 / 8) < 1e-12);
	matrix_set(&matrix, 0, 2, NAN); /* then a judges b against d, b all, c only b against d */
	CHECK(discover_quality_paia(&matrix, &racks, &triplets) == 1 && triplets == 5);
	for (uint32_t i = 0; i < 12; i++)
		place[i] = 0; /* all in one rack: nothing to infer */
	CHECK(isnan(discover_quality_paia(&matrix, &racks, &triplets)) && triplets == 0);
	matrix_fini(&matrix);
}

/* Random distances are right half of the time. */
static void test_paia_chance(uint64_t seed)
{
	uint32_t place[32 * 2];
	struct racks racks = {.nodes = 32, .levels = 2, .place = place};
	struct matrix matrix;
	struct error err;
	struct rng rng;

	rng_init(&rng, seed);
	CHECK(matrix_init(&matrix, 32, &err) == ESP_OK);
	for (uint32_t i = 0; i < 32; i++) {
		place[2 * i] = i / 16;
		place[2 * i + 1] = i / 4;
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, rng_unit(&rng));
	}
	double score = discover_quality_paia(&matrix, &racks, NULL);
	CHECK_MSG(score > 0.4 && score < 0.6, "%g", score);
	matrix_fini(&matrix);
}

/* ---- mutual information ---- */

static struct grouping group(const uint32_t *labels, uint32_t nodes)
{
	struct grouping grouping;

	CHECK(grouping_from(&grouping, labels, nodes, NULL) == ESP_OK);
	return grouping;
}

static void check_ami(const uint32_t *a, const uint32_t *b, uint32_t nodes, double wanted)
{
	struct grouping x = group(a, nodes), y = group(b, nodes);

	CHECK_MSG(fabs(discover_quality_ami(&x, &y) - wanted) < 1e-9, "%.12g, not %.12g", discover_quality_ami(&x, &y),
	          wanted);
	CHECK(fabs(discover_quality_ami(&x, &y) - discover_quality_ami(&y, &x)) < 1e-12);
	grouping_fini(&x);
	grouping_fini(&y);
}

/*
 * By hand. Two and two against two and two, crosswise: each cell has 1, no information. At random, a cell of
 * two groups of two has 0, 1, 2 with probabilities 1/6, 4/6, 1/6; 2 gives 2/4 log 2, 1 gives 1/4 log 1 = 0;
 * four cells: 4 * 1/6 * 1/2 log 2 = 1/3 log 2. Both entropies are log 2: (0 - 1/3) / (1 - 1/3) = -1/2.
 *
 * Two and two against two, one, one: the information is log 2, the larger entropy 3/2 log 2. At random: cells
 * of two and two as above, two of them: 1/6 log 2; of two and one, four: 1 in common with probability 1/2,
 * which gives 1/4 log 2: 1/2 log 2. In all 2/3 log 2: (1 - 2/3) / (3/2 - 2/3) = 2/5.
 */
static void test_ami_by_hand(void)
{
	check_ami((uint32_t[]){0, 0, 1, 1}, (uint32_t[]){0, 1, 0, 1}, 4, -0.5);
	check_ami((uint32_t[]){0, 0, 1, 1}, (uint32_t[]){0, 0, 1, 2}, 4, 0.4);
	check_ami((uint32_t[]){0, 0, 1, 1}, (uint32_t[]){5, 5, 2, 2}, 4, 1);
	check_ami((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 0, 0, 0}, 4, 1);
	check_ami((uint32_t[]){0, 1, 2, 3}, (uint32_t[]){3, 2, 1, 0}, 4, 1);
	check_ami((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 0, 1, 1}, 4, 0);
	check_ami((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 1, 2, 3}, 4, 0);
	check_ami((uint32_t[]){0}, (uint32_t[]){9}, 1, 1);
}

/* The expectation over all orders of the nodes is subtracted: the mean over them is 0. */
static void test_ami_mean(void)
{
	uint32_t a[] = {0, 0, 0, 1, 1, 2}, order[] = {0, 1, 2, 3, 4, 5}, turned[6], counters[6] = {0}, i = 1;
	uint32_t labels[] = {0, 1, 1, 1, 0, 0};
	double sum = 0, count = 0;
	struct grouping x = group(a, 6);

	for (;;) { /* Heap's permutations */
		for (uint32_t k = 0; k < 6; k++)
			turned[k] = labels[order[k]];
		struct grouping y = group(turned, 6);
		sum += discover_quality_ami(&x, &y);
		count++;
		grouping_fini(&y);
		while (i < 6 && counters[i] == i)
			counters[i++] = 0;
		if (i == 6)
			break;
		uint32_t with = i % 2 == 0 ? 0 : counters[i], kept = order[with];
		order[with] = order[i];
		order[i] = kept;
		counters[i]++;
		i = 1;
	}
	CHECK_U64(count, 720);
	CHECK_MSG(fabs(sum / count) < 1e-12, "%g", sum / count);
	grouping_fini(&x);
}

static void test_ami_random(uint64_t seed)
{
	double sum = 0;

	for (uint64_t turn = 0; turn < 100; turn++) {
		struct grouping a, b;

		CHECK(grouping_random(&a, 64, 8, seed + 2 * turn, NULL) == ESP_OK &&
		      grouping_random(&b, 64, 8, seed + 2 * turn + 1, NULL) == ESP_OK);
		double score = discover_quality_ami(&a, &b);
		CHECK(score > -0.2 && score < 0.3);
		sum += score;
		grouping_fini(&a);
		grouping_fini(&b);
	}
	CHECK_MSG(fabs(sum / 100) < 0.02, "%g in the mean", sum / 100);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	test_paia();
	test_paia_chance(seed);
	test_ami_by_hand();
	test_ami_mean();
	test_ami_random(seed);
	return 0;
}
