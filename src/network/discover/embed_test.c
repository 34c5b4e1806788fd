#include "network/discover/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES 20u

/* Distances of random points in so many dimensions, to the power of alpha, and start-up costs. */
static void plant(struct rng *rng, uint32_t nodes, uint32_t dimensions, double alpha, double own_most, double unit,
                  struct matrix *matrix)
{
	double points[NODES][4], own[NODES];
	struct error err;

	CHECK(matrix_init(matrix, nodes, &err) == ESP_OK);
	for (uint32_t i = 0; i < nodes; i++) {
		own[i] = rng_unit(rng) * own_most;
		for (uint32_t k = 0; k < dimensions; k++)
			points[i][k] = rng_unit(rng) * 2;
		for (uint32_t j = 0; j < i; j++) {
			double square = 0;

			for (uint32_t k = 0; k < dimensions; k++)
				square += (points[i][k] - points[j][k]) * (points[i][k] - points[j][k]);
			matrix_set(matrix, i, j, (pow(square, alpha / 2) + own[i] + own[j]) * unit);
		}
	}
}

static double mean_of(const struct matrix *matrix)
{
	double sum = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++)
			sum += isnan(matrix_get(matrix, i, j)) ? 0 : matrix_get(matrix, i, j);
	}
	return sum / (double)matrix_known(matrix);
}

/* Planted points are recovered up to isometry, in any unit, also with a tenth of the pairs unknown. */
static void test_recovers(uint64_t seed)
{
	static const double alphas[] = {1, 1.5, 1.7, 2}, units[] = {1, 1e-9, 1e6};
	struct rng rng;

	rng_init(&rng, seed);
	for (int turn = 0; turn < 24; turn++) {
		double alpha = alphas[turn % 4], own = turn % 2 ? 1 : 0;
		struct embed_options options = {.dimensions = 2 + turn % 3 / 2, .alpha = alpha, .no_startup = own == 0,
		                                .steps = 1500, .restarts = 8, .seed = seed};
		struct matrix matrix, full, found;
		struct embedding embedding;
		struct error err;

		plant(&rng, NODES, options.dimensions, alpha, own, units[turn / 4 % 3], &matrix);
		CHECK(matrix_copy(&full, &matrix, &err) == ESP_OK);
		for (uint32_t i = 0; i < NODES && turn % 8 >= 4; i++)
			matrix_set(&matrix, i, (i + 5) % NODES, NAN);
		CHECK_MSG(discover_embed(&matrix, &options, &embedding, &err) == ESP_OK, "%s", err.text);
		double mean = mean_of(&full), worst = 0;
		CHECK_MSG(embedding.objective < 0.01 * mean, "turn %d, alpha %g: %g is left of %g", turn, alpha,
		          embedding.objective, mean);
		CHECK(embedding.objective <= embedding.start);
		CHECK(discover_embedding_matrix(&embedding, true, &found, &err) == ESP_OK);
		for (uint32_t i = 0; i < NODES; i++) {
			CHECK(embedding.startup[i] >= 0 && (own > 0 || embedding.startup[i] == 0));
			for (uint32_t j = 0; j < i; j++) /* the unknown ones as well */
				worst = fmax(worst, fabs(matrix_get(&found, i, j) - matrix_get(&full, i, j)));
		}
		CHECK_MSG(worst < 0.15 * mean, "turn %d, alpha %g: one is off by %g of %g", turn, alpha, worst, mean);
		discover_embedding_fini(&embedding);
		matrix_fini(&matrix);
		matrix_fini(&full);
		matrix_fini(&found);
	}
}

static bool is_same(const struct embedding *a, const struct embedding *b)
{
	return memcmp(a->points, b->points, (size_t)a->nodes * a->dimensions * sizeof(double)) == 0 &&
	       memcmp(a->startup, b->startup, a->nodes * sizeof(double)) == 0 && a->objective == b->objective;
}

/*
 * Noise that no space explains: equal seeds give equal bytes, different seeds different ones; restarts never
 * make it worse.
 */
static void test_seeds(uint64_t seed)
{
	struct matrix matrix;
	struct error err;
	struct rng rng;

	rng_init(&rng, seed);
	CHECK(matrix_init(&matrix, NODES, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, 1 + rng_unit(&rng));
	}
	for (int turn = 0; turn < 6; turn++) {
		struct embed_options options = {.alpha = 1 + turn % 3 / 2.0, .no_startup = turn > 2, .restarts = 1,
		                                .steps = 100, .seed = seed};
		struct embedding one, two, other, more;

		CHECK(discover_embed(&matrix, &options, &one, &err) == ESP_OK &&
		      discover_embed(&matrix, &options, &two, &err) == ESP_OK);
		CHECK(is_same(&one, &two) && one.objective < one.start);
		options.seed++;
		CHECK(discover_embed(&matrix, &options, &other, &err) == ESP_OK && !is_same(&one, &other));
		options.seed--;
		options.restarts = 5;
		CHECK(discover_embed(&matrix, &options, &more, &err) == ESP_OK && more.objective <= one.objective);
		discover_embedding_fini(&one);
		discover_embedding_fini(&two);
		discover_embedding_fini(&other);
		discover_embedding_fini(&more);
	}
	matrix_fini(&matrix);
}

/* The order of nodes does not matter: the residuals are the same. */
static void test_order(uint64_t seed)
{
	struct embed_options options = {.dimensions = 2, .restarts = 8, .steps = 1000, .seed = seed};
	struct embedding one, two;
	uint32_t order[NODES];
	struct matrix matrix, turned;
	struct error err;
	struct rng rng;

	rng_init(&rng, seed);
	plant(&rng, NODES, 4, 2, 1, 1, &matrix);
	for (uint32_t i = 0; i < NODES; i++)
		order[i] = (7 * i + 3) % NODES;
	CHECK(matrix_select(&matrix, order, NODES, &turned, &err) == ESP_OK);
	CHECK(discover_embed(&matrix, &options, &one, &err) == ESP_OK &&
	      discover_embed(&turned, &options, &two, &err) == ESP_OK);
	CHECK_MSG(fabs(one.objective - two.objective) < 0.02 * one.objective, "%g and %g", one.objective, two.objective);
	discover_embedding_fini(&one);
	discover_embedding_fini(&two);
	matrix_fini(&matrix);
	matrix_fini(&turned);
}

/* Squares of distances on a line, fitted as distances: only negative costs would make the short ones short enough. */
static void test_never_negative(uint64_t seed)
{
	struct embed_options options = {.dimensions = 1, .alpha = 1, .seed = seed};
	struct embedding embedding;
	struct matrix matrix;
	struct error err;
	struct rng rng;

	rng_init(&rng, seed);
	plant(&rng, NODES, 1, 2, 0, 1, &matrix);
	CHECK(discover_embed(&matrix, &options, &embedding, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++)
		CHECK_MSG(embedding.startup[i] >= 0, "node %u costs %g", i, embedding.startup[i]);
	discover_embedding_fini(&embedding);
	matrix_fini(&matrix);
}

/* No information: one node, all unknown, all distances 0, all equal. */
static void test_corners(void)
{
	for (uint32_t nodes = 1; nodes <= 3; nodes++) {
		for (int fill = 0; fill < 3; fill++) {
			for (int startup = 0; startup < 2; startup++) {
				struct embed_options options = {.no_startup = !startup, .steps = 50};
				struct embedding embedding;
				struct matrix matrix;
				struct error err;

				CHECK(matrix_init(&matrix, nodes, &err) == ESP_OK);
				for (uint32_t i = 0; i < nodes && fill > 0; i++) {
					for (uint32_t j = 0; j < i; j++)
						matrix_set(&matrix, i, j, fill - 1);
				}
				CHECK(discover_embed(&matrix, &options, &embedding, &err) == ESP_OK);
				CHECK(embedding.objective >= 0 && embedding.objective <= embedding.start);
				for (uint32_t i = 0; i < nodes * embedding.dimensions; i++)
					CHECK(isfinite(embedding.points[i]));
				discover_embedding_fini(&embedding);
				matrix_fini(&matrix);
			}
		}
	}
}

static void test_options(void)
{
	struct embedding embedding;
	struct matrix matrix;
	struct error err;

	CHECK(matrix_init(&matrix, 2, &err) == ESP_OK);
	CHECK(discover_embed(&matrix, &(struct embed_options){.alpha = 2.5}, &embedding, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "an embedding with alpha 2.5: it is from 1 to 2");
	CHECK(discover_embed(&matrix, &(struct embed_options){.alpha = NAN}, &embedding, &err) == ESP_EINVAL);
	CHECK(discover_embed(&matrix, &(struct embed_options){.alpha = 0.5}, &embedding, &err) == ESP_EINVAL);
	CHECK(discover_embed(&matrix, &(struct embed_options){.dimensions = 65}, &embedding, &err) == ESP_EINVAL);
	CHECK(discover_embed(&matrix, &(struct embed_options){.restarts = 1000000}, &embedding, &err) == ESP_EINVAL);
	matrix_fini(&matrix);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	test_recovers(seed);
	test_seeds(seed);
	test_order(seed);
	test_never_negative(seed);
	test_corners();
	test_options();
	return 0;
}
