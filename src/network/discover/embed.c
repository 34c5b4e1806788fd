#include "network/discover/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "network/discover/embed_fit.h"

#define DIMENSIONS_DEFAULT_MOST 32u
#define RESTARTS_DEFAULT 4u
#define RESTARTS_DEFAULT_MANY 2u /* with many nodes all starts end about equally well, and time counts */
#define MANY_NODES 256u
#define STEPS_DEFAULT 400u
#define RESTARTS_MOST 1000u
#define STEPS_MOST 100000u
#define SPREAD_LEAST 1e-3 /* of the mean: a smaller spread is below single precision */

static uint32_t usual_dimensions(uint32_t nodes)
{
	uint32_t root = 2;

	while (root < DIMENSIONS_DEFAULT_MOST && root * root < nodes)
		root++;
	return root;
}

static enum esp_status set_defaults(const struct embed_options *options, uint32_t nodes, struct embed_options *out,
                                    struct error *err)
{
	*out = *options;
	if (out->dimensions == 0)
		out->dimensions = usual_dimensions(nodes);
	if (out->alpha == 0)
		out->alpha = 2;
	if (out->restarts == 0)
		out->restarts = nodes > MANY_NODES ? RESTARTS_DEFAULT_MANY : RESTARTS_DEFAULT;
	if (out->steps == 0)
		out->steps = STEPS_DEFAULT;
	if (out->dimensions > EMBED_DIMENSIONS_MAX)
		return error_set(err, ESP_EINVAL, "an embedding in %u dimensions: there can be 1 to %u", out->dimensions,
		                 EMBED_DIMENSIONS_MAX);
	if (!(out->alpha >= 1 && out->alpha <= 2))
		return error_set(err, ESP_EINVAL, "an embedding with alpha %g: it is from 1 to 2", out->alpha);
	if (out->restarts > RESTARTS_MOST || out->steps > STEPS_MOST)
		return error_set(err, ESP_EINVAL, "an embedding with %u restarts of %u steps: at most %u of %u", out->restarts,
		                 out->steps, RESTARTS_MOST, STEPS_MOST);
	return ESP_OK;
}

/*
 * The distance that becomes 1. Adam's step size is absolute, so the relevant part should be about that large:
 * with start-up costs, which absorb the common part of all distances, that is their spread; otherwise their
 * length.
 */
static double choose_unit(const struct matrix *matrix, bool startup)
{
	uint64_t known = matrix_known(matrix);
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double value = matrix_get(matrix, i, j);

			sum += isnan(value) ? 0 : value;
		}
	}
	double mean = known > 0 ? sum / (double)known : 0;
	if (!(mean > 0))
		return 1;
	if (!startup)
		return mean;
	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double off = matrix_get(matrix, i, j) / mean - 1;

			squares += isnan(off) ? 0 : off * off;
		}
	}
	return mean * fmax(sqrt(squares / (double)known), SPREAD_LEAST);
}

/* The root mean square of the residuals, computed in double precision. */
static double residual(const struct matrix *matrix, const struct embedding *embedding)
{
	double sum = 0;
	uint64_t known = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double value = matrix_get(matrix, i, j);

			if (isnan(value))
				continue;
			double left = discover_embedding_distance(embedding, i, j) / embedding->unit + embedding->startup[i] +
			              embedding->startup[j] - value / embedding->unit;
			sum += left * left;
			known++;
		}
	}
	return known > 0 ? sqrt(sum / (double)known) * embedding->unit : 0;
}

static void copy_points(const struct fit *fit, const float *points, const float *startup, struct embedding *out)
{
	for (uint32_t i = 0; i < out->nodes; i++) {
		for (uint32_t k = 0; k < out->dimensions; k++)
			out->points[(size_t)i * out->dimensions + k] = points[(size_t)k * fit->nodes + i];
		out->startup[i] = startup[i];
	}
}

static enum esp_status embedding_init(struct embedding *embedding, uint32_t nodes, const struct embed_options *options,
                                      struct error *err)
{
	*embedding = (struct embedding){.nodes = nodes, .dimensions = options->dimensions, .alpha = options->alpha};
	embedding->points = calloc((size_t)nodes * options->dimensions, sizeof(*embedding->points));
	embedding->startup = calloc(nodes, sizeof(*embedding->startup));
	if (embedding->points && embedding->startup)
		return ESP_OK;
	discover_embedding_fini(embedding);
	(void)error_set(err, ESP_ENOMEM, "no memory for an embedding of %u nodes", nodes);
	return ESP_ENOMEM;
}

void discover_embedding_fini(struct embedding *embedding)
{
	free(embedding->points);
	free(embedding->startup);
	*embedding = (struct embedding){0};
}

/* One start and its end, in *trial. */
static void run_restart(struct fit *fit, const struct matrix *matrix, uint64_t seed, struct embedding *trial)
{
	discover_fit_start(fit, seed);
	copy_points(fit, fit->points, fit->startup, trial);
	trial->start = residual(matrix, trial);
	discover_fit_run(fit);
	copy_points(fit, fit->best_points, fit->best_startup, trial);
	trial->objective = residual(matrix, trial);
	if (trial->objective <= trial->start)
		return;
	/* the start was an optimum, but for the last digits of single precision */
	discover_fit_start(fit, seed);
	copy_points(fit, fit->points, fit->startup, trial);
	trial->objective = trial->start;
}

enum esp_status discover_embed(const struct matrix *matrix, const struct embed_options *options, struct embedding *out,
                               struct error *err)
{
	struct embed_options settled;
	struct embedding best = {0}, trial = {0};
	struct fit fit = {0};
	enum esp_status status = set_defaults(options, matrix->size, &settled, err);

	if (status == ESP_OK)
		status = embedding_init(&best, matrix->size, &settled, err);
	if (status == ESP_OK)
		status = embedding_init(&trial, matrix->size, &settled, err);
	double unit = choose_unit(matrix, !settled.no_startup);
	best.unit = trial.unit = unit;
	if (status == ESP_OK)
		status = discover_fit_init(&fit, matrix, unit, &settled, err);
	uint64_t seed = settled.seed;
	for (uint32_t restart = 0; status == ESP_OK && restart < settled.restarts; restart++) {
		run_restart(&fit, matrix, rng_splitmix(&seed), &trial);
		if (restart == 0 || trial.objective < best.objective) {
			struct embedding kept = best;

			best = trial;
			trial = kept;
		}
	}
	discover_fit_fini(&fit);
	discover_embedding_fini(&trial);
	if (status == ESP_OK)
		*out = best;
	else
		discover_embedding_fini(&best);
	return status;
}

double discover_embedding_distance(const struct embedding *embedding, uint32_t i, uint32_t j)
{
	const double *a = embedding->points + (size_t)i * embedding->dimensions;
	const double *b = embedding->points + (size_t)j * embedding->dimensions;
	double square = 0;

	for (uint32_t k = 0; k < embedding->dimensions; k++)
		square += (a[k] - b[k]) * (a[k] - b[k]);
	if (embedding->alpha == 2)
		return square * embedding->unit;
	if (embedding->alpha == 1)
		return sqrt(square) * embedding->unit;
	return pow(square, embedding->alpha / 2) * embedding->unit;
}

enum esp_status discover_embedding_matrix(const struct embedding *embedding, bool startup, struct matrix *out,
                                          struct error *err)
{
	enum esp_status status = matrix_init(out, embedding->nodes, err);

	for (uint32_t i = 0; status == ESP_OK && i < embedding->nodes; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double own = startup ? (embedding->startup[i] + embedding->startup[j]) * embedding->unit : 0;

			matrix_set(out, i, j, discover_embedding_distance(embedding, i, j) + own);
		}
	}
	return status;
}
