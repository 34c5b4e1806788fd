#include "network/discover/judge_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/discover/judge_parts.h"
#include "network/discover/quality.h"
#include "network/discover/choose_grouping.h"

/* Shares of the evidence for all candidates, and agreement with the results of other seeds: from 0 to 1. */
#define SURE_SHARE 0.95
#define SURE_AGREEMENT 0.95
#define LIKELY_SHARE 0.7
#define LIKELY_AGREEMENT 0.7

/* Groups with a smaller ratio of far to near are useless, however clearly they show. */
#define APART 1.05

/* Which candidates the cost model considers, and the call that it considers. */
#define EVIDENCE_LESS 3.0 /* nats: odds of twenty to one against the best */
#define COMPANY_SHARE 0.8
#define SHORTLIST 16u
#define CALL_BYTES (UINT64_C(100) << 20)

const char *discover_verdict_word_text(enum verdict_word word)
{
	static const char *const texts[] = {
		[VERDICT_NONE] = "no groups", [VERDICT_UNSURE] = "unsure", [VERDICT_LIKELY] = "likely",
		[VERDICT_SURE] = "sure",      [VERDICT_TOLD] = "as told",
	};
	return texts[word];
}

void discover_verdict_fini(struct verdict *verdict)
{
	grouping_fini(&verdict->grouping);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++) {
		discover_candidates_fini(&verdict->kinds[k].candidates);
		matrix_fini(&verdict->kinds[k].tamed);
	}
	free(verdict->belonging);
	*verdict = (struct verdict){0};
}

/* ---- one kind of distance ---- */

/* Latencies are compared by differences, bandwidths by ratios. */
static struct candidates_options options_of(const struct verdict_wish *wish, enum survey_kind kind)
{
	return (struct candidates_options){
		.seed = wish->seed, .groups_least = wish->groups, .groups_most = wish->groups,
		    .ratios = kind == SURVEY_INVERSE_BANDWIDTH, .ways = true};
}

static enum esp_status analyse_kind(const struct survey *survey, enum survey_kind kind, const struct verdict_wish *wish,
                                    struct verdict_kind *out, struct error *err)
{
	const struct candidates_options options = options_of(wish, kind);
	const struct matrix *matrix = &survey->matrices[kind];

	if (matrix->size == 0)
		return ESP_OK;
	enum esp_status status = discover_clip(matrix, &out->tamed, err);
	if (status == ESP_OK)
		status = discover_candidates_make(&out->tamed, &options, &out->candidates, err);
	if (status == ESP_OK)
		status = discover_candidates_choose(&out->tamed, &options, &out->candidates, &out->choice, err);
	out->measured = status == ESP_OK;
	return status;
}

/* True if less than half of the distances of some host are known, whose position is then unknown. */
static bool is_sketchy(const struct matrix *matrix)
{
	for (uint32_t i = 0; i < matrix->size; i++) {
		uint32_t known = 0;
		for (uint32_t j = 0; j < matrix->size; j++)
			known += j != i && isfinite(matrix_get(matrix, i, j));
		if (2 * known < matrix->size - 1)
			return true;
	}
	return matrix->size == 0;
}

/* True if this kind is not used, as the other one is better known. */
static bool is_unused(const struct survey *survey, uint32_t kind)
{
	return is_sketchy(&survey->matrices[kind]) && !is_sketchy(&survey->matrices[SURVEY_KINDS - 1 - kind]);
}

static const struct candidate *chosen_of(const struct verdict_kind *kind)
{
	return &kind->candidates.list[kind->choice.index];
}

static bool shows_groups(const struct verdict_kind *kind)
{
	const struct candidates_choice *choice = &kind->choice;

	return kind->measured && chosen_of(kind)->grouping.count > 1 &&
	       (isnan(choice->within) || choice->across > choice->within * APART);
}

/* The share of the evidence that does not depend on the seed. */
static double weight_of(const struct verdict_kind *kind)
{
	return shows_groups(kind) ? kind->choice.sure * kind->choice.agreement : 0;
}

/* ---- the choice ---- */

/* The tightest candidate with so many groups. NULL: there is none. */
static const struct candidate *find_told(const struct verdict_kind *kind, uint32_t groups)
{
	for (uint32_t i = 0; kind->measured && i < kind->candidates.count; i++)
		if (kind->candidates.list[i].grouping.count == groups)
			return &kind->candidates.list[i];
	return NULL;
}

static enum esp_status take_candidate(struct verdict *verdict, enum survey_kind kind, const struct candidate *candidate,
                                      struct error *err)
{
	verdict->kind = kind;
	return grouping_from(&verdict->grouping, candidate->grouping.group_of, candidate->grouping.nodes, err);
}

static enum esp_status choose_told(struct verdict *verdict, uint32_t groups, struct error *err)
{
	const struct candidate *best = NULL;
	uint32_t best_kind = 0;

	for (uint32_t k = 0; k < SURVEY_KINDS; k++) {
		const struct candidate *told = find_told(&verdict->kinds[k], groups);
		if (told && (!best || told->silhouette > best->silhouette)) {
			best = told;
			best_kind = k;
		}
	}
	verdict->word = VERDICT_TOLD;
	if (!best)
		return error_set(err, ESP_EINVAL, "the hosts cannot be cut into %u groups", groups);
	return take_candidate(verdict, (enum survey_kind)best_kind, best, err);
}

static enum verdict_word judge(const struct verdict_kind *kind, bool apart)
{
	const struct candidates_choice *choice = &kind->choice;

	if (!shows_groups(kind))
		return VERDICT_NONE;
	if (is_sketchy(&kind->tamed) || !apart)
		return VERDICT_UNSURE;
	if (choice->sure >= SURE_SHARE && choice->agreement >= SURE_AGREEMENT)
		return VERDICT_SURE;
	return choice->sure >= LIKELY_SHARE && choice->agreement >= LIKELY_AGREEMENT ? VERDICT_LIKELY : VERDICT_UNSURE;
}

/*
 * Of the kinds that show groups, the one that shows them more clearly; latency, if both do equally.
 * SURVEY_KINDS: nothing was measured.
 */
static uint32_t clearest(const struct verdict *verdict)
{
	uint32_t best = SURVEY_KINDS;

	for (uint32_t k = 0; k < SURVEY_KINDS; k++) {
		const struct verdict_kind *kind = &verdict->kinds[k];
		if (kind->measured && (best == SURVEY_KINDS || weight_of(kind) > weight_of(&verdict->kinds[best])))
			best = k;
	}
	return best;
}

/* The candidates with about as much evidence as the best one. Returns their number. */
static uint32_t shortlist(const struct verdict_kind *kind, const uint32_t **groupings, uint32_t *indices)
{
	double least = chosen_of(kind)->evidence - EVIDENCE_LESS;
	uint32_t count = 0;

	for (uint32_t i = 0; i < kind->candidates.count && count < SHORTLIST; i++) {
		const struct candidate *candidate = &kind->candidates.list[i];
		bool passed_over = candidate->evidence > chosen_of(kind)->evidence; /* prefer_company() */
		if (candidate->grouping.count < 2 || candidate->evidence < least || passed_over)
			continue;
		indices[count] = i;
		groupings[count++] = candidate->grouping.group_of;
	}
	return count;
}

/*
 * Of those, the one with the fastest plan on the measured distances. Without bandwidths the cost model could
 * only assume that they are like the latencies: then the evidence decides.
 */
static enum esp_status choose_by_cost(const struct survey *survey, const struct verdict_wish *wish,
                                      enum survey_kind which, struct verdict_kind *kind, struct error *err)
{
	const struct matrix *inverse = &survey->matrices[SURVEY_INVERSE_BANDWIDTH],
	    *rtt = &survey->matrices[SURVEY_LATENCY];
	const uint32_t *groupings[SHORTLIST];
	uint32_t indices[SHORTLIST], best = 0, count = shortlist(kind, groupings, indices);
	struct matrix latency = {0};
	struct tune_network network = {.nodes = survey->count, .seconds_per_byte = inverse->at};
	enum esp_status status = ESP_OK;

	if (inverse->size == 0)
		return ESP_OK;
	if (rtt->size > 0) {
		status = matrix_copy(&latency, rtt, err);
		for (size_t i = 0; i < (size_t)latency.size * latency.size && status == ESP_OK; i++)
			latency.at[i] /= 2; /* one way */
		network.latency = latency.at;
	}
	if (status == ESP_OK)
		status = discover_choose_grouping(&network, groupings, count, CALL_BYTES, &best, NULL, err);
	matrix_fini(&latency);
	if (status != ESP_OK)
		return status;
	const struct candidates_options options = options_of(wish, which);
	kind->choice.index = indices[best];
	return discover_candidates_sure(&kind->tamed, &options, &kind->candidates, indices[best], &kind->choice.sure, err);
}

/*
 * By bandwidth a host with a slower or a busy link looks like one in a rack of its own, and the former is more
 * usual: if enough of the evidence is for a grouping without single hosts, that one is chosen. It is not
 * certain then: the host that was moved is a rival.
 */
static uint32_t prefer_company(const struct verdict_kind *kind)
{
	uint32_t best = kind->choice.index;
	double least = COMPANY_SHARE * chosen_of(kind)->evidence;

	if (!discover_has_lonely(&chosen_of(kind)->grouping))
		return best;
	for (uint32_t i = 0; i < kind->candidates.count; i++) {
		const struct candidate *candidate = &kind->candidates.list[i];
		if (candidate->grouping.count < 2 || candidate->evidence < least || discover_has_lonely(&candidate->grouping))
			continue;
		best = i;
		least = candidate->evidence;
	}
	return best;
}

static enum esp_status choose_free(const struct survey *survey, const struct verdict_wish *wish,
                                   struct verdict *verdict, struct error *err)
{
	uint32_t best = clearest(verdict);

	if (best == SURVEY_KINDS)
		return error_set(err, ESP_EINVAL, "nothing of that kind was measured");
	struct verdict_kind *kind = &verdict->kinds[best];
	bool apart = false;
	if (shows_groups(kind) && best == SURVEY_INVERSE_BANDWIDTH)
		kind->choice.index = prefer_company(kind);
	enum esp_status status = shows_groups(kind) ? choose_by_cost(survey, wish, (enum survey_kind)best, kind, err)
	                                            : ESP_OK;
	if (status == ESP_OK)
		status = discover_are_apart(best == SURVEY_LATENCY ? &kind->tamed : &survey->matrices[best],
		                            &chosen_of(kind)->grouping, &apart, err);
	if (status != ESP_OK)
		return status;
	if (best == SURVEY_INVERSE_BANDWIDTH)
		apart = apart && !discover_has_lonely(&chosen_of(kind)->grouping);
	else if (apart)
		status = discover_hosts_are_apart(&kind->tamed, &chosen_of(kind)->grouping, &apart, err);
	if (status != ESP_OK)
		return status;
	verdict->word = judge(kind, apart); /* of the chosen candidate, not of the one with the most evidence */
	return take_candidate(verdict, (enum survey_kind)best,
	                      shows_groups(kind) ? chosen_of(kind) : &kind->candidates.list[0], err);
}

/* ---- certainty ---- */

static enum esp_status measure_gap(const struct matrix *matrix, struct verdict *verdict, struct error *err)
{
	uint32_t n = matrix->size, inside = 0, outside = 0;
	double *values = calloc((size_t)n * n, sizeof(*values)), *others = values ? values + (size_t)n * (n - 1) / 2 : NULL;

	if (!values)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			double each = matrix_get(matrix, i, j);
			if (!isfinite(each))
				continue;
			if (verdict->grouping.group_of[i] == verdict->grouping.group_of[j])
				values[inside++] = each;
			else
				others[outside++] = each;
		}
	verdict->within = discover_quantile(values, inside, 0.5);
	verdict->across = discover_quantile(others, outside, 0.5);
	free(values);
	return ESP_OK;
}

/* The distances of a host to the hosts of a group. */
struct nearness {
	double sum;
	uint32_t known;
};

static double mean_of(const struct nearness *one)
{
	return one->known ? one->sum / one->known : NAN;
}

/* to: scratch, one per group. */
static double belonging_of(const struct matrix *matrix, const struct grouping *grouping, uint32_t host,
                           struct nearness *to)
{
	double next = INFINITY;

	memset(to, 0, grouping->count * sizeof(*to));
	for (uint32_t j = 0; j < matrix->size; j++)
		if (j != host && isfinite(matrix_get(matrix, host, j))) {
			to[grouping->group_of[j]].sum += matrix_get(matrix, host, j);
			to[grouping->group_of[j]].known++;
		}
	double own = mean_of(&to[grouping->group_of[host]]);
	for (uint32_t g = 0; g < grouping->count; g++)
		if (g != grouping->group_of[host])
			next = fmin(next, mean_of(&to[g])); /* fmin ignores NAN */
	if (!isfinite(own) || !isfinite(next) || fmax(own, next) <= 0)
		return 0;
	return (next - own) / fmax(own, next);
}

static enum esp_status measure_belonging(const struct matrix *matrix, struct verdict *verdict, struct error *err)
{
	struct nearness *to = calloc(verdict->grouping.count, sizeof(*to));

	verdict->belonging = calloc(matrix->size, sizeof(*verdict->belonging));
	if (!to || !verdict->belonging) {
		free(to);
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", matrix->size);
	}
	verdict->doubtful = 0;
	for (uint32_t i = 0; i < matrix->size; i++) {
		verdict->belonging[i] = belonging_of(matrix, &verdict->grouping, i, to);
		if (verdict->belonging[i] < verdict->belonging[verdict->doubtful])
			verdict->doubtful = i;
	}
	free(to);
	return ESP_OK;
}

uint32_t discover_verdict_groups_by(const struct verdict *verdict, enum survey_kind kind)
{
	const struct verdict_kind *one = &verdict->kinds[kind];

	return !one->measured ? 0 : shows_groups(one) ? chosen_of(one)->grouping.count : 1;
}

static double compare_kinds(const struct verdict *verdict)
{
	const struct verdict_kind *a = &verdict->kinds[SURVEY_LATENCY], *b = &verdict->kinds[SURVEY_INVERSE_BANDWIDTH];

	if (!a->measured || !b->measured)
		return NAN;
	return discover_quality_ami(&chosen_of(a)->grouping, &chosen_of(b)->grouping);
}

enum esp_status discover_verdict_make(const struct survey *survey, const struct verdict_wish *wish, struct verdict *out,
                                      struct error *err)
{
	struct verdict verdict = {0};
	enum esp_status status = ESP_OK;

	for (uint32_t k = 0; k < SURVEY_KINDS && status == ESP_OK; k++)
		if (!is_unused(survey, k))
			status = analyse_kind(survey, (enum survey_kind)k, wish, &verdict.kinds[k], err);
	if (status == ESP_OK)
		status = wish->groups ? choose_told(&verdict, wish->groups, err) : choose_free(survey, wish, &verdict, err);
	if (status == ESP_OK)
		status = measure_gap(&survey->matrices[verdict.kind], &verdict, err);
	if (status == ESP_OK)
		status = measure_belonging(&survey->matrices[verdict.kind], &verdict, err);
	if (status != ESP_OK) {
		discover_verdict_fini(&verdict);
		return status;
	}
	verdict.kinds_agree = compare_kinds(&verdict);
	*out = verdict;
	return ESP_OK;
}
