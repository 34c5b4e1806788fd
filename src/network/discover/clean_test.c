#include "network/discover/clean.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"
#include "network/discover/embed.h"

#define NODES 12u

/* Two racks, 30 and 36, own parts of 0 to 10, a little noise. */
static void make(struct rng *rng, double *own, struct matrix *matrix)
{
	struct error err;

	CHECK(matrix_init(matrix, NODES, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++) {
		own[i] = rng_unit(rng) * 10;
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, (i % 2 == j % 2 ? 30 : 36) + own[i] + own[j] + rng_unit(rng));
	}
}

static void test_own(struct rng *rng)
{
	double own[NODES], found[NODES];
	struct matrix matrix;
	struct error err;

	make(rng, own, &matrix);
	matrix_set(&matrix, 3, 4, NAN);
	matrix_set(&matrix, 5, 6, 1000); /* one pair does not change any own part */
	CHECK(discover_clean_own(&matrix, found, &err) == ESP_OK);
	for (uint32_t i = 1; i < NODES; i++)
		CHECK_MSG(fabs((found[i] - found[0]) - (own[i] - own[0])) < 7, "%u: %g for %g", i, found[i] - found[0],
		          own[i] - own[0]);
	matrix_fini(&matrix);
	CHECK(matrix_init(&matrix, 2, &err) == ESP_OK);
	CHECK(discover_clean_own(&matrix, found, &err) == ESP_OK && found[0] == 0 && found[1] == 0);
	matrix_fini(&matrix);
}

/*
 * Distances that are sums of own parts only: these parts are found, not only their differences. Medians leave
 * an ambiguity (half of the nodes may have a little more and the others as much less), but the mean is unique.
 */
static void test_own_sums(struct rng *rng)
{
	double own[NODES], found[NODES], off = 0;
	struct matrix matrix;
	struct error err;

	CHECK(matrix_init(&matrix, NODES, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++) {
		own[i] = 5 + rng_unit(rng) * 10;
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, own[i] + own[j] + (i % 2 == 1 && j == i - 1 ? 50 : 0));
	}
	CHECK(discover_clean_own(&matrix, found, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++) {
		off += (found[i] - own[i]) / NODES;
		CHECK_MSG(fabs(found[i] - own[i]) < 4, "node %u: %g for %g", i, found[i], own[i]);
	}
	CHECK_MSG(fabs(off) < 1, "on average %g too much", off);
	matrix_fini(&matrix);
}

static void test_fence(struct rng *rng)
{
	struct matrix matrix, before;
	struct error err;
	double own[NODES];
	uint64_t count;

	make(rng, own, &matrix);
	CHECK(discover_clean_fence(&matrix, &count, &err) == ESP_OK && count == 0);
	matrix_set(&matrix, 1, 2, 500);
	matrix_set(&matrix, 7, 9, 300);
	matrix_set(&matrix, 4, 8, 0);
	matrix_set(&matrix, 0, 8, NAN);
	CHECK(matrix_copy(&before, &matrix, &err) == ESP_OK);
	CHECK(discover_clean_fence(&matrix, &count, &err) == ESP_OK && count == 2 && matrix_check(&matrix, &err) == ESP_OK);
	CHECK(matrix_get(&matrix, 1, 2) < 100 && matrix_get(&matrix, 1, 2) > 36 && matrix_get(&matrix, 7, 9) < 100);
	CHECK(matrix_get(&matrix, 4, 8) == 0 && isnan(matrix_get(&matrix, 0, 8)));
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++)
			CHECK(!(matrix_get(&matrix, i, j) > matrix_get(&before, i, j)));
	}
	matrix_fini(&before);
	matrix_fini(&matrix);
}

/* The distances of make() without noise, which is 0.5 on average. */
static void make_model(const double *own, struct matrix *model)
{
	struct error err;

	CHECK(matrix_init(model, NODES, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(model, i, j, (i % 2 == j % 2 ? 30 : 36) + own[i] + own[j] + 0.5);
}

static void spoil(struct matrix *matrix)
{
	matrix_set(matrix, 1, 2, 300);
	matrix_set(matrix, 7, 9, 200);
	matrix_set(matrix, 5, 0, NAN);
}

static void check_spoilt(const struct suspect *suspects)
{
	CHECK(suspects[0].a == 0 && suspects[0].b == 5 && isnan(suspects[0].measured) && isinf(suspects[0].excess));
	CHECK(suspects[1].a == 1 && suspects[1].b == 2 && suspects[1].measured == 300 && suspects[1].expected < 100);
	CHECK(suspects[2].a == 7 && suspects[2].b == 9 && suspects[2].excess > 6);
}

/* Pairs that do not fit and unknown pairs are reported, the worst first; others are not. */
static void test_suspects(struct rng *rng)
{
	struct suspect suspects[10];
	struct matrix matrix, model;
	struct error err;
	double own[NODES];
	uint32_t count;

	make(rng, own, &matrix);
	make_model(own, &model);
	CHECK(discover_clean_suspects(&matrix, &model, 0, suspects, 10, &count, &err) == ESP_OK);
	CHECK_MSG(count == 0, "%u are suspected, such as %u and %u", count, suspects[0].a, suspects[0].b);
	spoil(&matrix);
	CHECK(discover_clean_suspects(&matrix, &model, 0, suspects, 10, &count, &err) == ESP_OK);
	CHECK_MSG(count == 3, "%u are suspected", count);
	check_spoilt(suspects);
	CHECK(discover_clean_suspects(&matrix, &model, 0, suspects, 2, &count, &err) == ESP_OK && count == 2);
	matrix_fini(&model);
	CHECK(matrix_init(&model, 2, &err) == ESP_OK);
	CHECK(discover_clean_suspects(&matrix, &model, 0, suspects, 10, &count, &err) == ESP_EINVAL);
	matrix_fini(&model);
	matrix_fini(&matrix);
}

/*
 * With a model fitted to the same measurement, those pairs come first. An embedding may end with a node between
 * two racks; that node's pairs are suspects as well, by much smaller deviations, and cost another probe.
 */
static void test_suspects_of_embedding(struct rng *rng)
{
	const struct embed_options options = {.dimensions = 2};
	struct embedding embedding;
	struct suspect suspects[10];
	struct matrix matrix, model, fenced;
	struct error err;
	double own[NODES];
	uint32_t count;

	make(rng, own, &matrix);
	spoil(&matrix);
	CHECK(matrix_copy(&fenced, &matrix, &err) == ESP_OK && discover_clean_fence(&fenced, NULL, &err) == ESP_OK);
	CHECK(discover_embed(&fenced, &options, &embedding, &err) == ESP_OK);
	CHECK(discover_embedding_matrix(&embedding, true, &model, &err) == ESP_OK);
	CHECK(discover_clean_suspects(&matrix, &model, 0, suspects, 10, &count, &err) == ESP_OK);
	CHECK_MSG(count >= 3, "%u are suspected", count);
	check_spoilt(suspects);
	CHECK_MSG(count == 3 || suspects[3].excess < suspects[2].excess / 5, "%u and %u are off by %g", suspects[3].a,
	          suspects[3].b, suspects[3].excess);
	discover_embedding_fini(&embedding);
	matrix_fini(&fenced);
	matrix_fini(&model);
	matrix_fini(&matrix);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (int turn = 0; turn < 10; turn++) {
		test_own(&rng);
		test_own_sums(&rng);
		test_fence(&rng);
		test_suspects(&rng);
		test_suspects_of_embedding(&rng);
	}
	return 0;
}
