/*
 * affinity_judge.c - the evidence of measured distances for a grouping: the likelihood of one number per node
 * and one gap between groups. Pure.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "network/discover/affinity_parts.h"
#include "network/discover/loops.h"
#include "network/discover/median.h"

#define TAILS 3.0        /* degrees of freedom of Student's t distribution */
#define ROUNDS 40        /* of fitting; with many nodes fewer suffice, as each has many pairs */
#define ROUNDS_MANY 8
#define MANY_NODES 128u
#define NORMAL 1.4826    /* standard deviation of normal noise per unit of its median */
#define EXACT 1e-3       /* of the deviation with one group: smaller noise counts as none */
/* of the noise: smaller changes do not change the likelihood by a hundredth, as it is flat at its maximum */
#define SETTLED 1e-4
#define SAMPLE 16384u    /* pairs: enough to choose where the fit begins */

/* One fit. */
struct model {
	const struct matrix *matrix;
	double *own;
	double *group;   /* by node: its group as a number */
	double gap;
	double noise;
	double *left, *counts, *apart; /* of one row */
	double *scratch; /* for medians: SAMPLE, or all pairs if there are fewer */
};

/* The row of node i with the first `count` nodes. */
static struct loops_row row_of(const struct model *model, uint32_t i, uint32_t count)
{
	return (struct loops_row){
		.values = model->matrix->at + (size_t)i * model->matrix->size, .own = model->own, .group = model->group,
		.own_here = model->own[i], .group_here = model->group[i], .gap = model->gap, .count = count,
	};
}

static double left_of(const struct model *model, uint32_t i, uint32_t j)
{
	bool is_apart = model->group[i] != model->group[j];

	return matrix_get(model->matrix, i, j) - model->own[i] - model->own[j] - (is_apart ? model->gap : 0);
}

/* The median residual, where the fit begins; of many pairs, that of a random sample. */
static double median_left(const struct model *model)
{
	uint32_t n = model->matrix->size;
	size_t count = 0;
	struct rng rng;

	rng_init(&rng, n);
	if ((size_t)n * n / 2 > SAMPLE) {
		for (uint32_t draw = 0; draw < SAMPLE; draw++) {
			uint32_t i = (uint32_t)rng_below(&rng, n), j = (uint32_t)rng_below(&rng, n - 1);
			double left = left_of(model, i, j < i ? j : j + 1);

			if (!isnan(left))
				model->scratch[count++] = fabs(left);
		}
		return count > 0 ? median(model->scratch, count) : 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double left = left_of(model, i, j);

			if (!isnan(left))
				model->scratch[count++] = fabs(left);
		}
	}
	return count > 0 ? median(model->scratch, count) : 0;
}

static void fit_own(struct model *model)
{
	uint32_t n = model->matrix->size;

	for (uint32_t i = 0; i < n; i++) {
		struct loops_row row = row_of(model, i, n);

		discover_loops_left(&row, model->left);
		model->left[i] = NAN; /* a node has no distance to itself */
		discover_loops_weigh(model->left, n, TAILS, 1 / model->noise, model->counts);
		double weights = discover_loops_sum(model->counts, n);
		model->own[i] += weights > 0 ? discover_loops_dot(model->counts, model->left, n) / weights : 0;
	}
}

/* The gap and the noise, in one pass over the pairs. */
static void fit_rest(struct model *model, double known)
{
	double sum = 0, weights = 0, squares = 0;

	for (uint32_t i = 1; i < model->matrix->size; i++) {
		struct loops_row row = row_of(model, i, i);

		discover_loops_left(&row, model->left);
		discover_loops_weigh(model->left, i, TAILS, 1 / model->noise, model->counts);
		memcpy(model->apart, model->counts, i * sizeof(*model->apart));
		discover_loops_keep_apart(&row, model->apart);
		sum += discover_loops_dot(model->apart, model->left, i);
		weights += discover_loops_sum(model->apart, i);
		for (uint32_t j = 0; j < i; j++)
			model->counts[j] *= model->left[j];
		squares += discover_loops_dot(model->counts, model->left, i);
	}
	model->gap += weights > 0 ? sum / weights : 0;
	model->noise = known > 0 ? sqrt(squares / known) : 0;
}

static double likelihood(const struct model *model, double known)
{
	double sum = 0;

	for (uint32_t i = 1; i < model->matrix->size; i++) {
		struct loops_row row = row_of(model, i, i);

		discover_loops_left(&row, model->left);
		discover_loops_odds(model->left, i, TAILS, 1 / model->noise, model->counts);
		sum += discover_loops_sum_logs(model->counts, i);
	}
	return -(TAILS + 1) / 2 * sum - known * log(model->noise);
}

/* Alternates expectation and maximisation; smaller noise than `least` counts as none. Returns the log-likelihood. */
static double fit(struct model *model, double least)
{
	int rounds = model->matrix->size > MANY_NODES ? ROUNDS_MANY : ROUNDS;
	double known = (double)matrix_known(model->matrix);
	bool is_moving = true;

	model->noise = fmax(NORMAL * median_left(model), least);
	for (int round = 0; round < rounds && model->noise > 0 && is_moving; round++) {
		double noise = model->noise, gap = model->gap;

		fit_own(model);
		fit_rest(model, known);
		model->noise = fmax(model->noise, least);
		is_moving = fabs(model->noise - noise) > SETTLED * noise || fabs(model->gap - gap) > SETTLED * noise;
	}
	return model->noise > 0 ? likelihood(model, known) : 0;
}

/* group_of NULL: one group. */
static enum esp_status model_init(struct model *model, const struct affinity *affinity, const uint32_t *group_of,
                                  struct error *err)
{
	uint32_t n = affinity->nodes;
	size_t pairs = (size_t)n * n / 2 + 1;

	*model = (struct model){.matrix = affinity->matrix};
	model->own = calloc(n, sizeof(*model->own));
	model->group = calloc(n, sizeof(*model->group));
	model->left = calloc(n, sizeof(*model->left));
	model->counts = calloc(n, sizeof(*model->counts));
	model->apart = calloc(n, sizeof(*model->apart));
	model->scratch = calloc(pairs < SAMPLE ? pairs : SAMPLE, sizeof(*model->scratch));
	if (!model->own || !model->group || !model->left || !model->counts || !model->apart || !model->scratch)
		return error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", n);
	memcpy(model->own, affinity->own, n * sizeof(*model->own));
	for (uint32_t i = 0; i < n && group_of; i++)
		model->group[i] = group_of[i];
	return ESP_OK;
}

static void model_fini(struct model *model)
{
	free(model->own);
	free(model->group);
	free(model->left);
	free(model->counts);
	free(model->apart);
	free(model->scratch);
}

enum esp_status discover_affinity_judge_one(struct affinity *affinity, struct error *err)
{
	struct model model;

	if (affinity->ways)
		return discover_affinity_ways_one(affinity, err);
	enum esp_status status = model_init(&model, affinity, NULL, err);

	if (status == ESP_OK) {
		affinity->likelihood = fit(&model, 0);
		affinity->noise = model.noise;
	}
	model_fini(&model);
	return status;
}

double discover_affinity_description(uint32_t count, uint32_t nodes)
{
	double length = log(nodes / 2.0) + nodes * log(count);

	for (uint32_t i = 2; i <= count; i++)
		length -= log(i);
	return length;
}

/*
 * The pattern of pairs across groups has own parts, too: with r_i nodes in other groups than node i's, R = sum
 * r_i, they are (r_i - R / (2 (n - 1))) / (n - 2), and without them the pattern's squared length is R / 2 - sum
 * r_i own_i.
 */
enum esp_status discover_affinity_begin(const struct affinity *affinity, const struct grouping *grouping, double *own,
                                        double *out_gap, struct error *err)
{
	uint32_t *sizes = calloc(grouping->count, sizeof(*sizes));
	double n = affinity->nodes, all = 0, apart = 0;

	if (!sizes)
		return error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", affinity->nodes);
	grouping_sizes(grouping, sizes);
	for (uint32_t group = 0; group < grouping->count; group++)
		all += sizes[group] * (n - sizes[group]);
	double square = all / 2;
	for (uint32_t i = 0; i < affinity->nodes; i++) {
		double others = n - sizes[grouping->group_of[i]];

		square -= others * (others - all / (2 * (n - 1))) / (n - 2);
		for (uint32_t j = 0; j < i; j++)
			apart -= grouping->group_of[i] != grouping->group_of[j] ? affinity->of[(size_t)i * affinity->nodes + j] : 0;
	}
	*out_gap = square > 1e-9 ? apart / square : 0;
	for (uint32_t i = 0; i < affinity->nodes; i++)
		own[i] -= *out_gap * (n - sizes[grouping->group_of[i]] - all / (2 * (n - 1))) / (n - 2);
	free(sizes);
	return ESP_OK;
}

enum esp_status discover_affinity_judge(const struct affinity *affinity, const struct grouping *grouping,
                                        struct affinity_verdict *out, struct error *err)
{
	struct model model;
	double known = affinity->known, freedom = known - affinity->nodes;

	if (affinity->ways)
		return discover_affinity_ways_judge(affinity, grouping, out, err);
	*out = (struct affinity_verdict){.noise = affinity->noise};
	if (grouping->count == 1 || affinity->nodes < AFFINITY_NODES_LEAST || freedom <= 1)
		return ESP_OK;
	enum esp_status status = model_init(&model, affinity, grouping->group_of, err);
	if (status == ESP_OK)
		status = discover_affinity_begin(affinity, grouping, model.own, &model.gap, err);
	if (status != ESP_OK) {
		model_fini(&model);
		return status;
	}
	double gained = fit(&model, EXACT * affinity->noise) - affinity->likelihood;
	/* the own parts are fitted as well, and take their share; the gap costs one parameter */
	out->evidence = (model.gap > 0 ? gained * freedom / known : 0) - log(known) / 2 -
	                discover_affinity_description(grouping->count, affinity->nodes);
	out->gap = model.gap;
	out->noise = model.noise;
	model_fini(&model);
	return ESP_OK;
}
