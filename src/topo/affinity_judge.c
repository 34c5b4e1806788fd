/*
 * affinity_judge.c - what measured distances say for a grouping: the likelihood of one number per node and a gap between groups.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/affinity_parts.h"
#include "topo/median.h"

#define TAILS 3.0        /* degrees of freedom of Student's distribution */
#define ROUNDS 40        /* of fitting; with many nodes fewer do, as each has many pairs */
#define ROUNDS_MANY 8
#define MANY_NODES 128u
#define NORMAL 1.4826    /* the deviation of normal noise, for one unit of its median */
#define EXACT 1e-3       /* of the deviation with one group: less noise than that is none */

/* One fit. */
struct model {
	const struct matrix *matrix;
	const uint32_t *group_of; /* NULL: one group */
	double *own;
	double gap;
	double noise;
	double *scratch; /* for medians: all pairs */
};

static double left_of(const struct model *model, uint32_t i, uint32_t j)
{
	bool is_apart = model->group_of && model->group_of[i] != model->group_of[j];

	return matrix_get(model->matrix, i, j) - model->own[i] - model->own[j] - (is_apart ? model->gap : 0);
}

/* How much a pair counts: about 1 if it is as the model says, less the further it is off. */
static double weight(const struct model *model, double left)
{
	double off = left / model->noise;

	return (TAILS + 1) / (TAILS + off * off);
}

static double median_left(const struct model *model)
{
	size_t count = 0;

	for (uint32_t i = 0; i < model->matrix->size; i++) {
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
	for (uint32_t i = 0; i < model->matrix->size; i++) {
		double sum = 0, weights = 0;

		for (uint32_t j = 0; j < model->matrix->size; j++) {
			double left = left_of(model, i, j);

			if (i == j || isnan(left))
				continue;
			double counts = weight(model, left);
			sum += counts * left;
			weights += counts;
		}
		model->own[i] += weights > 0 ? sum / weights : 0;
	}
}

/* The gap and the noise, in one pass over the pairs. */
static void fit_rest(struct model *model)
{
	double sum = 0, weights = 0, squares = 0, known = 0;

	for (uint32_t i = 0; i < model->matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double left = left_of(model, i, j);

			if (isnan(left))
				continue;
			double counts = weight(model, left);
			squares += counts * left * left;
			known++;
			if (model->group_of && model->group_of[i] != model->group_of[j]) {
				sum += counts * left;
				weights += counts;
			}
		}
	}
	model->gap += weights > 0 ? sum / weights : 0;
	model->noise = known > 0 ? sqrt(squares / known) : 0;
}

static double likelihood(const struct model *model)
{
	double sum = 0;

	for (uint32_t i = 0; i < model->matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double off = left_of(model, i, j) / model->noise;

			sum -= isnan(off) ? 0 : (TAILS + 1) / 2 * log(1 + off * off / TAILS) + log(model->noise);
		}
	}
	return sum;
}

/* Expectation and maximisation by turns; least is the noise that is none. Returns the logarithm of the likelihood. */
static double fit(struct model *model, double least)
{
	int rounds = model->matrix->size > MANY_NODES ? ROUNDS_MANY : ROUNDS;

	model->noise = fmax(NORMAL * median_left(model), least);
	for (int round = 0; round < rounds && model->noise > 0; round++) {
		fit_own(model);
		fit_rest(model);
		model->noise = fmax(model->noise, least);
	}
	return model->noise > 0 ? likelihood(model) : 0;
}

static enum esp_status model_init(struct model *model, const struct affinity *affinity, struct error *err)
{
	uint32_t n = affinity->nodes;

	*model = (struct model){.matrix = affinity->matrix};
	model->own = calloc(n, sizeof(*model->own));
	model->scratch = calloc((size_t)n * n / 2 + 1, sizeof(*model->scratch));
	if (!model->own || !model->scratch)
		return error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", n);
	memcpy(model->own, affinity->own, n * sizeof(*model->own));
	return ESP_OK;
}

static void model_fini(struct model *model)
{
	free(model->own);
	free(model->scratch);
}

enum esp_status affinity_judge_one(struct affinity *affinity, struct error *err)
{
	struct model model;
	enum esp_status status = model_init(&model, affinity, err);

	if (status == ESP_OK) {
		affinity->likelihood = fit(&model, 0);
		affinity->noise = model.noise;
	}
	model_fini(&model);
	return status;
}

/* Which of all groupings it is: how many groups, up to half of the nodes, and who is in which; groups have no names. */
static double description(uint32_t count, uint32_t nodes)
{
	double length = log(nodes / 2.0) + nodes * log(count);

	for (uint32_t i = 2; i <= count; i++)
		length -= log(i);
	return length;
}

/*
 * Where the fit begins, as the gap and the own parts are slow to find each other: least squares over all pairs. The pattern
 * of pairs apart has own parts, too: with r_i nodes in other groups than node i's, R = sum r_i, they are
 * (r_i - R / (2 (n - 1))) / (n - 2), and without them the pattern's square is R / 2 - sum r_i own_i.
 */
static enum esp_status begin(struct model *model, const struct affinity *affinity, const struct grouping *grouping, struct error *err)
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
	model->gap = square > 1e-9 ? apart / square : 0;
	for (uint32_t i = 0; i < affinity->nodes; i++)
		model->own[i] -= model->gap * (n - sizes[grouping->group_of[i]] - all / (2 * (n - 1))) / (n - 2);
	free(sizes);
	return ESP_OK;
}

enum esp_status affinity_judge(const struct affinity *affinity, const struct grouping *grouping, struct affinity_verdict *out,
                               struct error *err)
{
	struct model model;
	double known = (double)matrix_known(affinity->matrix), freedom = known - affinity->nodes;

	*out = (struct affinity_verdict){.noise = affinity->noise};
	if (grouping->count == 1 || affinity->nodes < AFFINITY_NODES_LEAST || freedom <= 1)
		return ESP_OK;
	enum esp_status status = model_init(&model, affinity, err);
	if (status == ESP_OK)
		status = begin(&model, affinity, grouping, err);
	if (status != ESP_OK) {
		model_fini(&model);
		return status;
	}
	model.group_of = grouping->group_of;
	double gained = fit(&model, EXACT * affinity->noise) - affinity->likelihood;
	/* the nodes' own parts are fitted as well, and take their share; the gap costs a number */
	out->evidence = (model.gap > 0 ? gained * freedom / known : 0) - log(known) / 2 - description(grouping->count, affinity->nodes);
	out->gap = model.gap;
	out->noise = model.noise;
	model_fini(&model);
	return ESP_OK;
}
