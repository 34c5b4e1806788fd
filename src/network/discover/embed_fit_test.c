/*
 * The gradient that Adam follows is that of equation 1: compared with finite differences of the equation, in
 * double precision.
 */
#include "network/discover/embed_fit.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES 9u
#define DIMENSIONS_MAX 4u
#define STEP 1e-4 /* of the differences: its third power is far below single precision */

/* The current points, in double precision. */
struct place {
	double at[NODES * (DIMENSIONS_MAX + 1)]; /* dimension by dimension, then start-up costs */
};

static double equation(const struct fit *fit, const struct place *place)
{
	const double *startup = place->at + (size_t)fit->nodes * fit->dimensions;
	double sum = 0;

	for (uint32_t i = 0; i < fit->nodes; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double probed = fit->probed[i * fit->nodes + j], square = 0;

			if (isnan(probed))
				continue;
			for (uint32_t k = 0; k < fit->dimensions; k++) {
				double apart = place->at[k * fit->nodes + i] - place->at[k * fit->nodes + j];

				square += apart * apart;
			}
			double left = pow(sqrt(square), fit->alpha) + startup[i] + startup[j] - probed;
			sum += left * left;
		}
	}
	return sum;
}

static void make_matrix(struct rng *rng, struct matrix *matrix)
{
	struct error err;

	CHECK(matrix_init(matrix, NODES, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, rng_below(rng, 8) == 0 ? NAN : 0.5 + 2 * rng_unit(rng));
	}
}

static void check_slope(struct fit *fit)
{
	uint32_t variables = fit->nodes * (fit->dimensions + 1);
	struct place place = {0};
	double largest = 0;

	for (uint32_t i = 0; i < variables; i++)
		place.at[i] = fit->points[i]; /* start-up costs follow the points */
	double sum = discover_fit_slope(fit), expected = equation(fit, &place);
	CHECK_MSG(fabs(sum / 2 - expected) < 1e-4 * expected, "alpha %g: the sum is %g, and %g by the equation",
	          (double)fit->alpha, sum / 2, expected);
	for (uint32_t i = 0; i < variables; i++)
		largest = fmax(largest, fabs((double)fit->slope[i]));
	for (uint32_t i = 0; i < variables; i++) {
		struct place more = place, less = place;

		more.at[i] += STEP;
		less.at[i] -= STEP;
		double slope = (equation(fit, &more) - equation(fit, &less)) / (2 * STEP) / 2;
		CHECK_MSG(fabs(slope - (double)fit->slope[i]) < 1e-3 * largest,
		          "alpha %g, variable %u of %u: %g, and %g by differences", (double)fit->alpha, i, variables,
		          (double)fit->slope[i], slope);
	}
}

static void test_slope(struct rng *rng, uint64_t seed)
{
	static const double alphas[] = {1, 1.3, 1.5, 2};

	for (uint32_t turn = 0; turn < 40; turn++) {
		struct embed_options options = {.dimensions = 1 + turn % DIMENSIONS_MAX, .alpha = alphas[turn / 4 % 4],
		                                .steps = 1};
		struct matrix matrix;
		struct fit fit;
		struct error err;

		make_matrix(rng, &matrix);
		CHECK(discover_fit_init(&fit, &matrix, 1, &options, &err) == ESP_OK);
		discover_fit_start(&fit, seed + turn);
		check_slope(&fit);
		discover_fit_fini(&fit);
		matrix_fini(&matrix);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct rng rng;

	rng_init(&rng, seed);
	test_slope(&rng, seed);
	return 0;
}
