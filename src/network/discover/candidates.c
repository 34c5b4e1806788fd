#include "network/discover/candidates_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "network/discover/affinity.h"
#include "network/discover/clean.h"
#include "network/discover/cluster.h"
#include "network/discover/quality.h"
#include "network/discover/silhouette.h"

#define TRIES_DEFAULT 8u
#define TRIES_DEFAULT_MANY 3u
#define MANY_NODES 128u
#define TRIES_MOST 1000u
#define EVERY_UP_TO 64u      /* every number of groups up to this one; above, in steps of a sixteenth */
#define EVERY_UP_TO_MANY 16u /* with many nodes: above, in steps of an eighth, then every number around the best */
#define NEARLY 1.05     /* nearly as tight as the tightest: ratio of the sums of squares */
#define ROUNDING 1e-9   /* in case the tightest has 0: relative to the sum with one group */

/* One run of k-means. */
struct attempt {
	struct grouping grouping;
	double inertia;
	uint64_t diversity;
};

struct search {
	struct candidates_options options;
	struct candidates *out;
	struct matrix distances; /* embedded, without start-up costs */
	struct matrix cleaned;   /* the measurement without outliers */
	struct affinity affinity;
	struct attempt *attempts; /* options.tries */
	double whole; /* inertia of one group */
	uint64_t seed; /* advanced from run to run */
	struct error *err;
};

static enum esp_status set_defaults(const struct candidates_options *options, uint32_t nodes,
                                    struct candidates_options *out, struct error *err)
{
	*out = *options;
	if (out->elasticity == 0)
		out->elasticity = 2;
	if (out->tries == 0)
		out->tries = nodes > MANY_NODES ? TRIES_DEFAULT_MANY : TRIES_DEFAULT;
	if (out->groups_least == 0)
		out->groups_least = 1;
	if (out->groups_most == 0)
		out->groups_most = nodes / 2 > 0 ? nodes / 2 : 1;
	if (!(out->elasticity >= 1 && out->elasticity <= 2))
		return error_set(err, ESP_EINVAL, "a balance elasticity of %g: it is from 1 to 2", out->elasticity);
	if (out->groups_least == out->groups_most && out->groups_most > nodes)
		return error_set(err, ESP_EINVAL, "%u groups are asked for, and there are %u hosts to put into them",
		                 out->groups_most, nodes);
	if (out->groups_most > nodes || out->groups_least > out->groups_most)
		return error_set(err, ESP_EINVAL, "%u to %u groups of %u nodes", out->groups_least, out->groups_most, nodes);
	if (out->tries > TRIES_MOST)
		return error_set(err, ESP_EINVAL, "%u tries for each number of groups: at most %u", out->tries, TRIES_MOST);
	return ESP_OK;
}

static bool is_coarse(const struct search *search)
{
	return search->out->embedding.nodes > MANY_NODES && !search->options.every;
}

static uint32_t next_count(const struct search *search, uint32_t groups)
{
	if (search->options.every)
		return groups + 1;
	if (is_coarse(search))
		return groups < EVERY_UP_TO_MANY ? groups + 1 : groups + groups / 8;
	return groups < EVERY_UP_TO ? groups + 1 : groups + groups / 16;
}

static void drop_attempts(struct search *search)
{
	for (uint32_t i = 0; i < search->options.tries; i++)
		grouping_fini(&search->attempts[i].grouping);
}

static enum esp_status run_attempts(struct search *search, uint32_t groups)
{
	const struct embedding *embedding = &search->out->embedding;
	struct cluster_options options = {
		.groups = groups, .least = discover_cluster_least(embedding->nodes, groups, search->options.elasticity)};
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < search->options.tries && status == ESP_OK; i++) {
		struct attempt *attempt = &search->attempts[i];

		options.seed = rng_splitmix(&search->seed);
		status = discover_cluster_points(embedding->points, embedding->nodes, embedding->dimensions, &options,
		                                 &attempt->grouping, &attempt->inertia, search->err);
		if (status == ESP_OK)
			attempt->diversity = grouping_diversity(&attempt->grouping);
	}
	return status;
}

/* The most even attempt with at most this inertia; of equals the tightest, then the first. */
static const struct attempt *most_even(const struct search *search, double inertia_most)
{
	const struct attempt *best = NULL;

	for (uint32_t i = 0; i < search->options.tries; i++) {
		const struct attempt *attempt = &search->attempts[i];

		if (attempt->inertia > inertia_most)
			continue;
		if (!best || attempt->diversity < best->diversity ||
		    (attempt->diversity == best->diversity && attempt->inertia < best->inertia))
			best = attempt;
	}
	return best;
}

static double tightest(const struct search *search)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < search->options.tries; i++)
		least = fmin(least, search->attempts[i].inertia);
	return least;
}

/* The mean agreement of the attempts with the kept one. */
static double agreement(const struct search *search, const struct grouping *kept)
{
	double sum = 0;

	for (uint32_t i = 0; i < search->options.tries; i++)
		sum += discover_quality_ami(kept, &search->attempts[i].grouping);
	return sum / search->options.tries;
}

/* Adds the grouping, unless an equal one is there already. */
static enum esp_status keep(struct search *search, struct grouping *grouping, double inertia, double agreeing)
{
	struct candidates *out = search->out;
	struct affinity_verdict verdict;

	for (uint32_t i = out->count; i > 0 && out->list[i - 1].grouping.count == grouping->count; i--) {
		if (grouping_equal(&out->list[i - 1].grouping, grouping))
			return ESP_OK;
	}
	enum esp_status status = discover_affinity_judge(&search->affinity, grouping, &verdict, search->err);
	if (status != ESP_OK)
		return status;
	struct candidate *list = realloc(out->list, (out->count + 1) * sizeof(*list));
	double apart = discover_silhouette(&search->distances, grouping);
	if (list)
		out->list = list;
	if (!list || isnan(apart) || isnan(agreeing))
		return error_set(search->err, ESP_ENOMEM, "no memory for candidates");
	list[out->count++] = (struct candidate){.grouping = *grouping,
	                                        .inertia = inertia,
	                                        .silhouette = apart,
	                                        .agreement = agreeing,
	                                        .gap = verdict.gap,
	                                        .evidence = verdict.evidence};
	*grouping = (struct grouping){0};
	return ESP_OK;
}

static enum esp_status keep_copy(struct search *search, const struct attempt *attempt, bool polished)
{
	struct grouping copy = {0};
	uint32_t least =
				 discover_cluster_least(attempt->grouping.nodes, attempt->grouping.count, search->options.elasticity),
			 moves = 0;
	enum esp_status status = grouping_from(&copy, attempt->grouping.group_of, attempt->grouping.nodes, search->err);

	if (status == ESP_OK && polished)
		status = discover_affinity_polish(&search->affinity, least, &copy, &moves, search->err);
	if (status == ESP_OK) {
		const struct embedding *embedding = &search->out->embedding;
		double inertia =
			moves > 0 ? discover_cluster_inertia(embedding->points, embedding->dimensions, &copy) : attempt->inertia;

		status = keep(search, &copy, inertia, agreement(search, &copy));
	}
	grouping_fini(&copy);
	return status;
}

static enum esp_status search_count(struct search *search, uint32_t groups)
{
	enum esp_status status = run_attempts(search, groups);

	if (status == ESP_OK) {
		if (groups == 1)
			search->whole = search->attempts[0].inertia;
		const struct attempt *tight = most_even(search, NEARLY * tightest(search) + ROUNDING * search->whole);

		status = keep_copy(search, tight, false);
		if (status == ESP_OK)
			status = keep_copy(search, tight, true);
		if (status == ESP_OK)
			status = keep_copy(search, most_even(search, INFINITY), false);
	}
	drop_attempts(search);
	return status;
}

/* Candidates are sorted by number of groups, then in the order in which they were found: the first is the tight one. */
static int compare_counts(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->grouping.count != y->grouping.count)
		return x->grouping.count < y->grouping.count ? -1 : 1;
	return (x->nth > y->nth) - (x->nth < y->nth);
}

static const struct candidate *strongest(const struct candidates *candidates)
{
	const struct candidate *best = &candidates->list[0];

	for (uint32_t i = 1; i < candidates->count; i++)
		best = candidates->list[i].evidence > best->evidence ? &candidates->list[i] : best;
	return best;
}

static bool has_count(const struct candidates *candidates, uint32_t groups)
{
	for (uint32_t i = 0; i < candidates->count; i++) {
		if (candidates->list[i].grouping.count == groups)
			return true;
	}
	return false;
}

/*
 * From the first number of groups to the last; with many nodes in steps, and then all numbers between the
 * neighbours of the one with the most evidence, repeated if that has moved. The evidence rises towards the
 * number of racks from both sides: a group too many splits a rack, a group too few joins two.
 */
static enum esp_status search_counts(struct search *search)
{
	const struct candidates_options *options = &search->options;
	enum esp_status status = options->only ? search_count(search, 1) : ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && options->only && i < options->only_count; i++)
		if (!has_count(search->out, options->only[i]))
			status = search_count(search, options->only[i]);
	for (uint32_t groups = options->groups_least; status == ESP_OK && !options->only && groups <= options->groups_most;
	     groups = next_count(search, groups))
		status = search_count(search, groups);
	for (bool again = is_coarse(search) && !options->only; again && status == ESP_OK;) {
		uint32_t best = strongest(search->out)->grouping.count, reach = best / 8 > 0 ? best / 8 - 1 : 0;
		uint32_t first = best - reach > options->groups_least ? best - reach : options->groups_least;

		again = false;
		for (uint32_t groups = first; status == ESP_OK && groups <= best + reach && groups <= options->groups_most;
		     groups++) {
			if (has_count(search->out, groups))
				continue;
			status = search_count(search, groups);
			again = true;
		}
	}
	for (uint32_t i = 0; i < search->out->count; i++)
		search->out->list[i].nth = i;
	if (status == ESP_OK)
		qsort(search->out->list, search->out->count, sizeof(*search->out->list), compare_counts);
	return status;
}

/* Logarithms relative to the shortest distance. A distance of 0 counts as the shortest other one. */
static void take_logarithms(struct matrix *matrix)
{
	double least = INFINITY;

	for (size_t i = 0; i < (size_t)matrix->size * matrix->size; i++)
		least = matrix->at[i] > 0 ? fmin(least, matrix->at[i]) : least;
	for (size_t i = 0; i < (size_t)matrix->size * matrix->size; i++)
		matrix->at[i] = matrix->at[i] > 0 ? log(matrix->at[i] / least) : matrix->at[i]; /* 0 and NAN stay */
}

enum esp_status discover_candidates_clean(const struct matrix *matrix, const struct candidates_options *options,
                                          struct matrix *out, struct error *err)
{
	enum esp_status status = matrix_copy(out, matrix, err);

	if (status == ESP_OK && options->ratios)
		take_logarithms(out);
	if (status == ESP_OK && !options->keep_outliers)
		status = discover_clean_fence(out, NULL, err);
	return status;
}

/* Prepares the distances: cleaned, then as affinities and as points. */
static enum esp_status prepare(struct search *search, const struct matrix *matrix)
{
	struct embed_options how = search->options.embed;
	struct embedding *embedding = &search->out->embedding;
	enum esp_status status = discover_candidates_clean(matrix, &search->options, &search->cleaned, search->err);

	if (status == ESP_OK)
		status = discover_affinity_init(&search->affinity, &search->cleaned, search->options.ways, search->err);
	how.seed = search->options.seed;
	if (status == ESP_OK)
		status = discover_embed(&search->cleaned, &how, embedding, search->err);
	if (status == ESP_OK)
		status = discover_embedding_matrix(embedding, false, &search->distances, search->err);
	return status;
}

enum esp_status discover_candidates_make(const struct matrix *matrix, const struct candidates_options *options,
                                         struct candidates *out, struct error *err)
{
	struct candidates found = {0};
	struct search search = {.out = &found, .seed = ~options->seed, .err = err};
	enum esp_status status = matrix_check(matrix, err);

	if (status == ESP_OK)
		status = set_defaults(options, matrix->size, &search.options, err);
	if (status == ESP_OK)
		status = prepare(&search, matrix);
	if (status == ESP_OK && !(search.attempts = calloc(search.options.tries, sizeof(*search.attempts))))
		status = error_set(err, ESP_ENOMEM, "no memory for candidates");
	if (status == ESP_OK)
		status = search_counts(&search);
	matrix_fini(&search.distances);
	matrix_fini(&search.cleaned);
	discover_affinity_fini(&search.affinity);
	free(search.attempts);
	if (status == ESP_OK)
		*out = found;
	else
		discover_candidates_fini(&found);
	return status;
}

void discover_candidates_fini(struct candidates *candidates)
{
	for (uint32_t i = 0; i < candidates->count; i++)
		grouping_fini(&candidates->list[i].grouping);
	free(candidates->list);
	discover_embedding_fini(&candidates->embedding);
	*candidates = (struct candidates){0};
}
