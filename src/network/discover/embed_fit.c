#include "network/discover/embed_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "network/discover/vectors.h"

/* Adam's usual values, but for the memory of the squares: 1,000 steps would be longer than the run. */
#define KEEP_DRIFT 0.9
#define KEEP_SWING 0.99
#define TINY 1e-8f
/* of a unit, at the beginning; decays to 0 with the square of the remaining part of the run */
#define RATE 0.1
#define BLOCK 64u         /* nodes */
#define SQUARE_LEAST 1e-10f /* of a distance whose negative power is taken */

enum esp_status discover_fit_init(struct fit *fit, const struct matrix *matrix, double unit,
                                  const struct embed_options *options, struct error *err)
{
	size_t n = matrix->size, variables = n * (options->dimensions + 1);
	float *at = calloc(n * n + 6 * variables + n + 2 * BLOCK, sizeof(*at));

	if (!at)
		return error_set(err, ESP_ENOMEM, "no memory for an embedding of %u nodes", matrix->size);
	*fit = (struct fit){.nodes = matrix->size,
	                    .dimensions = options->dimensions,
	                    .steps = options->steps,
	                    .alpha = (float)options->alpha,
	                    .has_startup = !options->no_startup,
	                    .memory = at,
	                    .probed = at};
	fit->points = at += n * n;
	fit->startup = fit->points + n * options->dimensions;
	fit->slope = at += variables;
	fit->drift = at += variables;
	fit->swing = at += variables;
	fit->best_points = at += variables;
	fit->best_startup = fit->best_points + n * options->dimensions;
	fit->rows = at += variables;
	fit->loss = at += variables;
	fit->square = at += n;
	fit->push = at + BLOCK;
	float *probed = fit->probed;
	for (uint32_t first = 0; first < n; first += BLOCK) {
		for (uint32_t j = 0; j < n; j++) {
			for (uint32_t i = first; i < n && i < first + BLOCK; i++)
				*probed++ = i == j ? NAN : (float)(matrix_get(matrix, j, i) / unit);
		}
	}
	return ESP_OK;
}

void discover_fit_fini(struct fit *fit)
{
	free(fit->memory);
	*fit = (struct fit){0};
}

/* Measured distances between j and the nodes of a block; they are contiguous per block, in the order of access. */
static const float *of_block(const struct fit *fit, uint32_t j, uint32_t first, uint32_t count)
{
	return fit->probed + (size_t)first * fit->nodes + (size_t)j * count;
}

/* Approximately normal, from uniform numbers only: the C library's logarithms differ in their last digits. */
static double bell(struct rng *rng)
{
	return (rng_unit(rng) + rng_unit(rng) + rng_unit(rng) + rng_unit(rng) - 2) * sqrt(3);
}

void discover_fit_start(struct fit *fit, uint64_t seed)
{
	struct rng rng;
	double spread = 1 / sqrt(2.0 * fit->dimensions); /* so that two points are about 1 apart */

	rng_init(&rng, seed);
	for (size_t i = 0; i < (size_t)fit->nodes * fit->dimensions; i++)
		fit->points[i] = (float)(bell(&rng) * spread);
	for (uint32_t i = 0; i < fit->nodes; i++) {
		uint32_t first = i / BLOCK * BLOCK, count = fit->nodes - first < BLOCK ? fit->nodes - first : BLOCK;
		float least = INFINITY;

		for (uint32_t j = 0; j < fit->nodes; j++)
			least = fminf(least, of_block(fit, j, first, count)[i - first]); /* ignores NAN */
		fit->startup[i] = fit->has_startup && !isinf(least) ? least / 2 : 0;
	}
}

/* ---- the gradient ---- */

/*
 * Nodes are processed in blocks, whose coordinates and gradients stay in the L1 cache while they are compared
 * with every j. Each node's sum still runs over the others in their order.
 */
WIDE static void discover_compute_squares(const struct fit *fit, uint32_t j, uint32_t first, uint32_t count)
{
	float *restrict square = fit->square;

	memset(square, 0, count * sizeof(*square));
	for (uint32_t k = 0; k < fit->dimensions; k++) {
		const float *restrict x = fit->points + (size_t)k * fit->nodes + first;
		float here = fit->rows[(size_t)j * fit->dimensions + k];

		for (uint32_t i = 0; i < count; i++)
			square[i] += (x[i] - here) * (x[i] - here);
	}
}

/* The residuals of the distances from j, and the force on each i along them: left * d(d^alpha)/d(d^2) * 2. */
WIDE static void discover_compute_pushes_2(const struct fit *fit, uint32_t j, uint32_t first, uint32_t count)
{
	const float *restrict probed = of_block(fit, j, first, count);
	const float *restrict square = fit->square, *restrict startup = fit->startup + first;
	float *restrict push = fit->push, *restrict loss = fit->loss + first,
	    *restrict slope = fit->slope + (size_t)fit->nodes * fit->dimensions + first;
	float own = fit->startup[j];

	for (uint32_t i = 0; i < count; i++) {
		float left = square[i] + startup[i] + own - probed[i];

		left = probed[i] == probed[i] ? left : 0;
		push[i] = 2 * left;
		slope[i] += left;
		loss[i] += left * left;
	}
}

WIDE static void discover_compute_pushes_1(const struct fit *fit, uint32_t j, uint32_t first, uint32_t count)
{
	const float *restrict probed = of_block(fit, j, first, count);
	const float *restrict square = fit->square, *restrict startup = fit->startup + first;
	float *restrict push = fit->push, *restrict loss = fit->loss + first,
	    *restrict slope = fit->slope + (size_t)fit->nodes * fit->dimensions + first;
	float own = fit->startup[j];

	for (uint32_t i = 0; i < count; i++) {
		float distance = sqrtf(square[i] > SQUARE_LEAST ? square[i] : SQUARE_LEAST);
		float left = distance + startup[i] + own - probed[i];

		left = probed[i] == probed[i] ? left : 0;
		push[i] = left / distance;
		slope[i] += left;
		loss[i] += left * left;
	}
}

static void compute_pushes_any(const struct fit *fit, uint32_t j, uint32_t first, uint32_t count)
{
	const float *restrict probed = of_block(fit, j, first, count), *restrict startup = fit->startup + first;
	float *restrict slope = fit->slope + (size_t)fit->nodes * fit->dimensions + first;

	for (uint32_t i = 0; i < count; i++) {
		float square = fmaxf(fit->square[i], SQUARE_LEAST);
		float power = fit->alpha == 1.5f ? sqrtf(square) * sqrtf(sqrtf(square)) : powf(square, fit->alpha / 2);
		float left = power + startup[i] + fit->startup[j] - probed[i];

		left = probed[i] == probed[i] ? left : 0;
		fit->push[i] = fit->alpha * left * power / square;
		slope[i] += left;
		fit->loss[first + i] += left * left;
	}
}

WIDE static void discover_add_pushes(const struct fit *fit, uint32_t j, uint32_t first, uint32_t count)
{
	const float *restrict push = fit->push;

	for (uint32_t k = 0; k < fit->dimensions; k++) {
		const float *restrict x = fit->points + (size_t)k * fit->nodes + first;
		float *restrict slope = fit->slope + (size_t)k * fit->nodes + first;
		float here = fit->rows[(size_t)j * fit->dimensions + k];

		for (uint32_t i = 0; i < count; i++)
			slope[i] += push[i] * (x[i] - here);
	}
}

static void turn_rows(const struct fit *fit)
{
	for (uint32_t k = 0; k < fit->dimensions; k++) {
		for (uint32_t i = 0; i < fit->nodes; i++)
			fit->rows[(size_t)i * fit->dimensions + k] = fit->points[(size_t)k * fit->nodes + i];
	}
}

static void add_slopes(const struct fit *fit, uint32_t first, uint32_t count)
{
	for (uint32_t j = 0; j < fit->nodes; j++) {
		discover_compute_squares(fit, j, first, count);
		if (fit->alpha == 2)
			discover_compute_pushes_2(fit, j, first, count);
		else if (fit->alpha == 1)
			discover_compute_pushes_1(fit, j, first, count);
		else
			compute_pushes_any(fit, j, first, count);
		discover_add_pushes(fit, j, first, count);
	}
}

double discover_fit_slope(struct fit *fit)
{
	double sum = 0;

	memset(fit->slope, 0, (size_t)fit->nodes * (fit->dimensions + 1) * sizeof(*fit->slope));
	memset(fit->loss, 0, fit->nodes * sizeof(*fit->loss));
	turn_rows(fit);
	for (uint32_t first = 0; first < fit->nodes; first += BLOCK)
		add_slopes(fit, first, fit->nodes - first < BLOCK ? fit->nodes - first : BLOCK);
	for (uint32_t i = 0; i < fit->nodes; i++)
		sum += fit->loss[i];
	return sum;
}

/* ---- the descent ---- */

WIDE static void discover_fit_step(struct fit *fit, double rate, double drift_share, double swing_share)
{
	size_t count = (size_t)fit->nodes * (fit->dimensions + (fit->has_startup ? 1 : 0));
	float *restrict x = fit->points, *restrict drift = fit->drift, *restrict swing = fit->swing;
	const float *restrict slope = fit->slope;
	float length = (float)(rate / (1 - drift_share)), scale = (float)(1 / (1 - swing_share));

	for (size_t i = 0; i < count; i++) {
		drift[i] = (float)KEEP_DRIFT * drift[i] + (float)(1 - KEEP_DRIFT) * slope[i];
		swing[i] = (float)KEEP_SWING * swing[i] + (float)(1 - KEEP_SWING) * slope[i] * slope[i];
		x[i] -= length * drift[i] / (sqrtf(swing[i] * scale) + TINY);
	}
	for (uint32_t i = 0; i < fit->nodes; i++)
		fit->startup[i] = fit->startup[i] > 0 ? fit->startup[i] : 0;
}

void discover_fit_run(struct fit *fit)
{
	size_t variables = (size_t)fit->nodes * (fit->dimensions + 1);
	double best = INFINITY, drift_share = 1, swing_share = 1;

	memset(fit->drift, 0, variables * sizeof(*fit->drift));
	memset(fit->swing, 0, variables * sizeof(*fit->swing));
	for (uint32_t t = 0; t <= fit->steps; t++) {
		double sum = discover_fit_slope(fit), left = 1 - (double)t / fit->steps;

		if (sum < best || t == 0) {
			best = sum;
			memcpy(fit->best_points, fit->points, variables * sizeof(*fit->points));
		}
		drift_share *= KEEP_DRIFT;
		swing_share *= KEEP_SWING;
		discover_fit_step(fit, RATE * left * left, drift_share, swing_share);
	}
}
