/*
 * affinity_ways.c - the evidence of distances measured on a network with other traffic: the likelihood of one
 * number per node and a gap between groups, or of one number per node and one per group, with asymmetric noise.
 * And the evidence for rivals. Pure.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "network/discover/affinity_parts.h"
#include "network/discover/loops.h"
#include "network/discover/median.h"

#define TAILS 3.0        /* degrees of freedom of Student's t distribution */
#define TAILS_NEAR 10.0  /* and on the nearer side, if that has its own */
#define ROUNDS 40        /* of fitting; with many nodes fewer suffice, as each has many pairs */
#define ROUNDS_MANY 8
#define MANY_NODES 128u
#define NORMAL 1.4826    /* standard deviation of normal noise per unit of its median */
#define WAY_LEAST 0.5    /* of the median way */
#define FITTED_NODES 32u /* up to so many nodes, each rival is fitted by itself */
#define SAMPLE 16384u    /* pairs: enough to choose where the fit begins */
#define EXACT 1e-3       /* of the deviation with one group: smaller noise counts as none */

/* One fit. */
struct model {
	const struct matrix *matrix;
	const uint32_t *group_of; /* NULL: one group */
	uint32_t groups;
	double *own;
	double gap;
	double *ways; /* by group; NULL: there is one gap. The gap of two groups is the sum of their ways */
	double noise;
	double most;       /* distances of this length may be longer: they are only lower bounds */
	double tails_near; /* degrees of freedom for pairs that are nearer than the model predicts */
	double *group, *way_of; /* by node: its group as a number, and the way of that group (0 without ways) */
	double *left, *counts, *apart; /* of one row */
	double *scratch; /* for medians: SAMPLE, or all pairs if there are fewer */
};

static double gap_of(const struct model *model, uint32_t a, uint32_t b)
{
	return a == b ? 0 : model->ways ? model->ways[a] + model->ways[b] : model->gap;
}

/* The residual of a pair with this gap. */
static double left_beside(const struct model *model, uint32_t i, uint32_t j, double gap)
{
	double value = matrix_get(model->matrix, i, j), left = value - model->own[i] - model->own[j] - gap;

	return value >= model->most && left < 0 ? 0 : left;
}

static double left_of(const struct model *model, uint32_t i, uint32_t j)
{
	double gap = model->group_of ? gap_of(model, model->group_of[i], model->group_of[j]) : 0;

	return left_beside(model, i, j, gap);
}

/* The weight of a pair: about 1 if the model fits, less the larger the residual. */
static double weight(const struct model *model, double left)
{
	double off = left / model->noise, tails = left < 0 ? model->tails_near : TAILS;

	return (tails + 1) / (tails + off * off);
}

/* The surprise of a residual, in nats, given as a number of deviations. */
static double surprise(const struct model *model, double off)
{
	double tails = off < 0 ? model->tails_near : TAILS;

	return (tails + 1) / 2 * log(1 + off * off / tails);
}

/* The median residual, where the fit begins; of many pairs, that of a random sample. */
static double median_left(const struct model *model)
{
	uint32_t n = model->matrix->size;
	bool many = (size_t)n * n / 2 > SAMPLE;
	size_t count = 0;
	struct rng rng;

	rng_init(&rng, n);
	for (uint32_t draw = 0; many && draw < SAMPLE; draw++) {
		uint32_t i = (uint32_t)rng_below(&rng, n), j = (uint32_t)rng_below(&rng, n - 1);
		double left = left_of(model, i, j < i ? j : j + 1);

		if (!isnan(left))
			model->scratch[count++] = fabs(left);
	}
	for (uint32_t i = 0; !many && i < n; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double left = left_of(model, i, j);

			if (!isnan(left))
				model->scratch[count++] = fabs(left);
		}
	}
	return count > 0 ? median(model->scratch, count) : 0;
}

/* The residuals of node i with the first `count` nodes, into model->left. */
static void leave_row(const struct model *model, uint32_t i, uint32_t count)
{
	const struct loops_way_row row = {
		.values = model->matrix->at + (size_t)i * model->matrix->size, .own = model->own, .group = model->group,
		    .way = model->way_of,
		.own_here = model->own[i], .group_here = model->group[i], .gap = model->ways ? model->way_of[i] : model->gap,
		    .most = model->most, .count = count,
	};

	discover_loops_way_left(&row, model->left);
}

static struct loops_tails tails_of(const struct model *model)
{
	return (struct loops_tails){model->tails_near, TAILS, 1 / model->noise};
}

/* The same with weights; unknown pairs and i itself have weight 0. */
static void weigh_row(const struct model *model, uint32_t i, uint32_t count)
{
	const struct loops_tails tails = tails_of(model);

	leave_row(model, i, count);
	if (i < count)
		model->left[i] = NAN;
	discover_loops_way_weigh(model->left, count, &tails, model->counts);
}

/* Sets the values of pairs within the group to 0. */
static void keep_apart(const struct model *model, uint32_t i, uint32_t count, double *values)
{
	const struct loops_row row = {.group = model->group, .group_here = model->group[i], .count = count};

	discover_loops_keep_apart(&row, values);
}

static void fit_own(struct model *model)
{
	uint32_t n = model->matrix->size;

	for (uint32_t i = 0; i < n; i++) {
		weigh_row(model, i, n);
		double weights = discover_loops_sum(model->counts, n);
		model->own[i] += weights > 0 ? discover_loops_dot(model->counts, model->left, n) / weights : 0;
	}
}

/* The gap and the noise, in one pass over the pairs. */
static void fit_rest(struct model *model, double known)
{
	double sum = 0, weights = 0, squares = 0;

	for (uint32_t i = 1; i < model->matrix->size; i++) {
		weigh_row(model, i, i);
		memcpy(model->apart, model->counts, i * sizeof(*model->apart));
		keep_apart(model, i, i, model->apart);
		sum += discover_loops_dot(model->apart, model->left, i);
		weights += discover_loops_sum(model->apart, i);
		for (uint32_t j = 0; j < i; j++)
			model->counts[j] *= model->left[j];
		squares += discover_loops_dot(model->counts, model->left, i);
	}
	model->gap += weights > 0 ? sum / weights : 0;
	model->noise = known > 0 ? sqrt(squares / known) : 0;
}

/* ---- ways of groups ---- */

/* The weighted mean residual of a group's pairs with other groups; 0: none is known. */
static double mean_across(const struct model *model, uint32_t group)
{
	uint32_t n = model->matrix->size;
	double sum = 0, weights = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (model->group_of[i] != group)
			continue;
		weigh_row(model, i, n);
		keep_apart(model, i, n, model->counts);
		sum += discover_loops_dot(model->counts, model->left, n);
		weights += discover_loops_sum(model->counts, n);
	}
	return weights > 0 ? sum / weights : 0;
}

/* The weighted mean residual of the pairs within a group; *out_weights: sum of the weights. */
static double mean_within(const struct model *model, uint32_t group, double *out_weights)
{
	double sum = 0, weights = 0;

	for (uint32_t i = 0; i < model->matrix->size; i++) {
		if (model->group_of[i] != group)
			continue;
		for (uint32_t j = 0; j < model->matrix->size; j++) {
			double left = i == j || model->group_of[j] != group ? NAN : left_of(model, i, j);
			if (isnan(left))
				continue;
			double counts = weight(model, left);
			sum += counts * left;
			weights += counts;
		}
	}
	*out_weights = weights;
	return weights > 0 ? sum / weights : 0;
}

static void set_way(struct model *model, uint32_t group, double way)
{
	model->ways[group] = way;
	for (uint32_t i = 0; i < model->matrix->size; i++)
		model->way_of[i] = model->group_of[i] == group ? way : model->way_of[i];
}

/* The median of the ways. */
static double usual_way(const struct model *model, uint32_t groups)
{
	memcpy(model->scratch, model->ways, groups * sizeof(*model->ways));
	return median(model->scratch, groups);
}

/*
 * A way takes the mean residual of the pairs across groups. None is much shorter than the median: two nodes
 * that are far from all nodes and from each other would otherwise be a group without a way. Then the nodes and
 * the way of their group exchange a common amount, which only changes pairs within the group; without that step
 * they would converge slowly.
 */
static void fit_ways(struct model *model, uint32_t groups)
{
	double weights, least = WAY_LEAST * usual_way(model, groups);

	for (uint32_t group = 0; group < groups; group++) {
		set_way(model, group, fmax(model->ways[group] + mean_across(model, group), least));
		double within = mean_within(model, group, &weights) / 2;
		double moved = weights > 0 ? fmin(within, model->ways[group] - least) : 0;
		set_way(model, group, model->ways[group] - moved);
		for (uint32_t i = 0; i < model->matrix->size; i++)
			model->own[i] += model->group_of[i] == group ? moved : 0;
	}
}

/* The mean gap of all pairs across groups. */
static double mean_gap(const struct model *model)
{
	double sum = 0, count = 0;

	for (uint32_t i = 0; i < model->matrix->size; i++)
		for (uint32_t j = 0; j < i; j++)
			if (model->group_of[i] != model->group_of[j]) {
				sum += gap_of(model, model->group_of[i], model->group_of[j]);
				count++;
			}
	return count > 0 ? sum / count : 0;
}

/* ---- fitting ---- */

static double likelihood(const struct model *model, double known)
{
	const struct loops_tails tails = tails_of(model);
	double near = 0, far = 0;

	for (uint32_t i = 1; i < model->matrix->size; i++) {
		leave_row(model, i, i);
		discover_loops_way_odds(model->left, i, &tails, model->counts, model->apart);
		near += discover_loops_sum_logs(model->counts, i);
		far += discover_loops_sum_logs(model->apart, i);
	}
	return -(tails.near + 1) / 2 * near - (tails.far + 1) / 2 * far - known * log(model->noise);
}

/* Alternates expectation and maximisation; smaller noise than `least` counts as none. Returns the log-likelihood. */
static double fit(struct model *model, double least)
{
	int rounds = model->matrix->size > MANY_NODES ? ROUNDS_MANY : ROUNDS;
	double known = (double)matrix_known(model->matrix);

	model->noise = fmax(NORMAL * median_left(model), least);
	for (int round = 0; round < rounds && model->noise > 0; round++) {
		fit_own(model);
		if (model->ways)
			fit_ways(model, model->groups);
		fit_rest(model, known);
		model->noise = fmax(model->noise, least);
	}
	return model->noise > 0 ? likelihood(model, known) : 0;
}

static double furthest(const struct matrix *matrix)
{
	double most = 0;

	for (size_t i = 0; i < (size_t)matrix->size * matrix->size; i++)
		most = fmax(most, matrix->at[i]); /* ignores NAN */
	return most;
}

static enum esp_status model_init(struct model *model, const struct affinity *affinity, struct error *err)
{
	uint32_t n = affinity->nodes;
	size_t pairs = (size_t)n * n / 2 + 1;

	*model = (struct model){.matrix = affinity->matrix, .most = INFINITY, .tails_near = affinity->ways
	                        ? TAILS_NEAR : TAILS};
	if (affinity->ways)
		model->most = furthest(affinity->matrix);
	model->own = calloc(n, sizeof(*model->own));
	model->group = calloc(n, sizeof(*model->group));
	model->way_of = calloc(n, sizeof(*model->way_of));
	model->left = calloc(n, sizeof(*model->left));
	model->counts = calloc(n, sizeof(*model->counts));
	model->apart = calloc(n, sizeof(*model->apart));
	model->scratch = calloc(pairs < SAMPLE ? pairs : SAMPLE, sizeof(*model->scratch));
	if (!model->own || !model->group || !model->way_of || !model->left || !model->counts || !model->apart ||
	    !model->scratch)
		return error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", n);
	memcpy(model->own, affinity->own, n * sizeof(*model->own));
	return ESP_OK;
}

static void model_fini(struct model *model)
{
	free(model->own);
	free(model->ways);
	free(model->group);
	free(model->way_of);
	free(model->left);
	free(model->counts);
	free(model->apart);
	free(model->scratch);
}

enum esp_status discover_affinity_ways_one(struct affinity *affinity, struct error *err)
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

/*
 * The share of a gain that counts: other fitted parameters, mostly the own parts, take the rest. 0: too little
 * is known.
 */
static double share_of_gain(const struct affinity *affinity, uint32_t ways)
{
	double known = affinity->known, freedom = known - affinity->nodes - ways;

	return affinity->nodes < AFFINITY_NODES_LEAST || freedom <= 1 ? 0 : freedom / known;
}

/* The description length of the parameters of a grouping: one gap, or a way per group, and the grouping itself. */
static double price(const struct affinity *affinity, bool ways, uint32_t groups)
{
	return (ways ? groups : 1) * log(affinity->known) / 2 + discover_affinity_description(groups, affinity->nodes);
}

/* Fits one of the two kinds of model to the grouping; *out_evidence: for the grouping. */
static enum esp_status fit_kind(struct model *model, const struct affinity *affinity, const struct grouping *grouping,
                                bool ways, double *out_evidence, struct error *err)
{
	enum esp_status status = model_init(model, affinity, err);

	if (status == ESP_OK)
		status = discover_affinity_begin(affinity, grouping, model->own, &model->gap, err);
	if (status == ESP_OK && ways && !(model->ways = calloc(grouping->count, sizeof(*model->ways))))
		status = error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", affinity->nodes);
	if (status != ESP_OK) {
		model_fini(model);
		return status;
	}
	model->group_of = grouping->group_of;
	model->groups = grouping->count;
	for (uint32_t i = 0; i < affinity->nodes; i++)
		model->group[i] = grouping->group_of[i];
	for (uint32_t group = 0; group < grouping->count && model->ways; group++)
		set_way(model, group, fmax(model->gap / 2, 0));
	double gained = fit(model, EXACT * affinity->noise) - affinity->likelihood;
	if (model->ways)
		model->gap = mean_gap(model);
	*out_evidence = (model->gap > 0 ? gained * share_of_gain(affinity, ways ? grouping->count : 0) : 0) -
	                price(affinity, ways, grouping->count);
	return ESP_OK;
}

/* Fits one gap, or ways if they have more evidence. */
static enum esp_status fit_grouping(struct model *model, const struct affinity *affinity,
                                    const struct grouping *grouping, double *out_evidence, struct error *err)
{
	struct model other;
	double evidence;
	enum esp_status status = fit_kind(model, affinity, grouping, false, out_evidence, err);

	if (status != ESP_OK || !affinity->ways)
		return status;
	status = fit_kind(&other, affinity, grouping, true, &evidence, err);
	if (status != ESP_OK) {
		model_fini(model);
		return status;
	}
	if (evidence <= *out_evidence) {
		model_fini(&other);
		return ESP_OK;
	}
	model_fini(model);
	*model = other;
	*out_evidence = evidence;
	return ESP_OK;
}

enum esp_status discover_affinity_ways_judge(const struct affinity *affinity, const struct grouping *grouping,
                                             struct affinity_verdict *out, struct error *err)
{
	struct model model;

	*out = (struct affinity_verdict){.noise = affinity->noise};
	if (grouping->count == 1 || share_of_gain(affinity, 0) == 0)
		return ESP_OK;
	enum esp_status status = fit_grouping(&model, affinity, grouping, &out->evidence, err);
	if (status != ESP_OK)
		return status;
	out->gap = model.gap;
	out->noise = model.noise;
	model_fini(&model);
	return ESP_OK;
}

/* ---- rivals ---- */

/*
 * The likelihood of the measurements of node i if it is in that group; UINT32_MAX: alone, with the way of its
 * current group.
 */
static double likelihood_in(const struct model *model, uint32_t i, uint32_t group)
{
	uint32_t own = group == UINT32_MAX ? model->group_of[i] : group;
	double sum = 0;

	for (uint32_t j = 0; j < model->matrix->size; j++) {
		uint32_t other = model->group_of[j];
		double gap = group == UINT32_MAX && other == own ? (model->ways ? 2 * model->ways[own] : model->gap)
		                                                 : gap_of(model, own, other);
		double off = left_beside(model, i, j, gap) / model->noise;
		sum -= i == j || isnan(off) ? 0 : surprise(model, off);
	}
	return sum;
}

/* The odds of the grouping with node i in that group (UINT32_MAX: alone), by the model of this one. */
static double odds_by_model(const struct affinity *affinity, const struct model *model, uint32_t i, uint32_t group,
                            uint32_t groups)
{
	double gained = share_of_gain(affinity, model->ways ? model->groups : 0) *
	                (likelihood_in(model, i, group) - likelihood_in(model, i, model->group_of[i]));

	return exp(gained - price(affinity, model->ways, groups) + price(affinity, model->ways, model->groups));
}

/* The same by a model fitted to it, which takes longer. */
static enum esp_status odds_by_fit(const struct affinity *affinity, const struct grouping *grouping, double evidence,
                                   uint32_t i, uint32_t group, double *out, struct error *err)
{
	struct affinity_verdict verdict = {0};
	struct grouping moved = {0};
	uint32_t *labels = calloc(grouping->nodes, sizeof(*labels));

	*out = 0;
	if (!labels)
		return error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", grouping->nodes);
	memcpy(labels, grouping->group_of, grouping->nodes * sizeof(*labels));
	labels[i] = group == UINT32_MAX ? grouping->count : group;
	enum esp_status status = grouping_from(&moved, labels, grouping->nodes, err);
	if (status == ESP_OK)
		status = discover_affinity_judge(affinity, &moved, &verdict, err);
	if (status == ESP_OK)
		*out = exp(verdict.evidence - evidence);
	grouping_fini(&moved);
	free(labels);
	return status;
}

enum esp_status discover_affinity_rivals(const struct affinity *affinity, const struct grouping *grouping,
                                         double *out_odds, struct error *err)
{
	struct model model;
	double evidence;
	uint32_t *sizes = calloc(grouping->count, sizeof(*sizes));

	*out_odds = 0;
	if (!sizes)
		return error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", affinity->nodes);
	grouping_sizes(grouping, sizes);
	if (grouping->count == 1 || share_of_gain(affinity, 0) == 0) {
		free(sizes);
		return ESP_OK;
	}
	enum esp_status status = fit_grouping(&model, affinity, grouping, &evidence, err);
	bool is_fitted = status == ESP_OK;
	for (uint32_t i = 0; i < affinity->nodes && status == ESP_OK && model.noise > 0; i++) {
		uint32_t own = grouping->group_of[i], left = grouping->count - (sizes[own] == 1);
		for (uint32_t group = 0; group <= grouping->count && status == ESP_OK; group++) {
			bool alone = group == grouping->count;
			double odds = 0;
			if (group == own || (alone && sizes[own] == 1))
				continue;
			if (affinity->nodes <= FITTED_NODES)
				status = odds_by_fit(affinity, grouping, evidence, i, alone ? UINT32_MAX : group, &odds, err);
			else
				odds = odds_by_model(affinity, &model, i, alone ? UINT32_MAX : group, left + alone);
			*out_odds += odds;
		}
	}
	if (is_fitted)
		model_fini(&model);
	free(sizes);
	return status;
}
