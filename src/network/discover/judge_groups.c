#include "network/discover/judge_groups.h"

#include <math.h>
#include <stdlib.h>

#include "network/discover/confirm.h"
#include "network/discover/judge_parts.h"
#include "network/discover/quality.h"

/* Shares of the evidence for all candidates, and agreement with the results of other seeds: from 0 to 1. */
#define SURE_SHARE 0.95
#define SURE_AGREEMENT 0.95
#define LIKELY_SHARE 0.7
#define LIKELY_AGREEMENT 0.7

/* Groups with a smaller ratio of far to near are useless, however clearly they show. */
#define APART 1.05

#define MOST_NODES 1024u  /* with more, average linkage and the search by swaps are all */

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
		matrix_fini(&verdict->kinds[k].confirmed);
		discover_natural_fini(&verdict->kinds[k].naturals);
	}
	free(verdict->belonging);
	*verdict = (struct verdict){0};
}

/* ---- one kind of distance ---- */

/* The numbers of groups of the clearest groupings. */
static void list_counts(struct verdict_kind *kind)
{
	const struct naturals *naturals = &kind->naturals;
	uint32_t best = naturals->list[discover_natural_pick(naturals)].grouping.count;

	if (best > 1)
		kind->counts[kind->count_count++] = best;
	for (uint32_t i = 1; i < naturals->count && kind->count_count < VERDICT_COUNTS; i++)
		if (naturals->list[i].grouping.count != best)
			kind->counts[kind->count_count++] = naturals->list[i].grouping.count;
}

/* The best of k-means takes part as well. */
static enum esp_status add_kmeans(struct verdict_kind *kind, struct error *err)
{
	const struct candidate *chosen = &kind->candidates.list[kind->choice.index];

	return chosen->grouping.count < 2 ? ESP_OK : discover_natural_add(&kind->naturals, &kind->confirmed,
	                                                                  &chosen->grouping, NATURAL_KMEANS, err);
}

static enum esp_status analyse_kind(const struct survey *survey, enum survey_kind kind, const struct verdict_wish *wish,
                                    struct verdict_kind *out, struct error *err)
{
	const struct matrix *matrix = &survey->matrices[kind];

	if (matrix->size == 0 || matrix_known(matrix) == 0)
		return ESP_OK;
	enum esp_status status = discover_confirm(matrix, &out->confirmed, err);
	if (status == ESP_OK)
		status = discover_clip(matrix, &out->tamed, err);
	if (status == ESP_OK && !wish->groups)
		status = discover_natural_make(&out->confirmed, &out->naturals, err);
	out->measured = status == ESP_OK;
	if (status != ESP_OK || matrix->size > MOST_NODES)
		return status;
	if (!wish->groups)
		list_counts(out);
	const struct candidates_options options = discover_options_of(wish, kind, out);
	status = discover_candidates_make(&out->tamed, &options, &out->candidates, err);
	if (status == ESP_OK)
		status = discover_candidates_choose(&out->tamed, &options, &out->candidates, &out->choice, err);
	return status == ESP_OK && !wish->groups ? add_kmeans(out, err) : status;
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

static bool shows_groups(const struct verdict_kind *kind)
{
	const struct candidates_choice *choice = &kind->choice;

	return kind->candidates.count > 0 && discover_chosen_of(kind)->grouping.count > 1 &&
	       (isnan(choice->within) || choice->across > choice->within * APART);
}

/* The share of the evidence that does not depend on the seed. */
static double weight_of(const struct verdict_kind *kind)
{
	return shows_groups(kind) ? kind->choice.sure * kind->choice.agreement : 0;
}

/* ---- the choice ---- */

static enum esp_status take_grouping(struct verdict *verdict, uint32_t kind, const struct grouping *grouping,
                                     struct error *err)
{
	verdict->kind = (enum survey_kind)kind;
	return grouping_from(&verdict->grouping, grouping->group_of, grouping->nodes, err);
}

/* Of the kinds, the one by which the groups are more clearly apart. */
static enum esp_status choose_told(struct verdict *verdict, const struct verdict_wish *wish, struct error *err)
{
	struct natural best = {.apart = -INFINITY};
	uint32_t best_kind = SURVEY_KINDS;
	enum esp_status status = ESP_OK;

	for (uint32_t k = 0; k < SURVEY_KINDS && status == ESP_OK; k++) {
		const struct verdict_kind *kind = &verdict->kinds[k];
		struct natural told = {0};

		if (!kind->measured)
			continue;
		status = discover_told(&kind->confirmed, wish->groups, wish->elasticity, wish->seed,
		                       kind->candidates.count ? &kind->candidates.list[0].grouping : NULL, &told, err);
		if (status == ESP_OK && told.apart > best.apart) {
			grouping_fini(&best.grouping);
			best = told;
			best_kind = k;
		} else {
			grouping_fini(&told.grouping);
		}
	}
	verdict->word = VERDICT_TOLD;
	if (status == ESP_OK && best_kind == SURVEY_KINDS)
		status = error_set(err, ESP_EINVAL, "no distance between any two of the hosts is known");
	if (status == ESP_OK) {
		verdict->source = best.source;
		verdict->polished = best.polished;
		status = take_grouping(verdict, best_kind, &best.grouping, err);
	}
	grouping_fini(&best.grouping);
	return status;
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

/* By the evidence, and the cost model of what is about as likely. */
static enum esp_status judge_evidence(const struct survey *survey, const struct verdict_wish *wish, uint32_t which,
                                      struct verdict_kind *kind, enum verdict_word *out_word, struct error *err)
{
	bool apart = false;

	if (shows_groups(kind) && which == SURVEY_INVERSE_BANDWIDTH)
		kind->choice.index = discover_prefer_company(kind);
	enum esp_status status =
		shows_groups(kind) ? discover_choose_by_cost(survey, wish, (enum survey_kind)which, kind, err) : ESP_OK;
	if (status == ESP_OK)
		status = discover_are_apart(which == SURVEY_LATENCY ? &kind->tamed : &survey->matrices[which],
		                            &discover_chosen_of(kind)->grouping, &apart, err);
	if (status == ESP_OK && which == SURVEY_INVERSE_BANDWIDTH)
		apart = apart && !discover_has_lonely(&discover_chosen_of(kind)->grouping);
	else if (status == ESP_OK && apart)
		status = discover_hosts_are_apart(&kind->tamed, &discover_chosen_of(kind)->grouping, &apart, err);
	*out_word = judge(kind, apart); /* of the chosen candidate, not of the one with the most evidence */
	return status;
}

/* The grouping that the evidence speaks for, one group if it shows none. */
static const struct grouping *evident(const struct verdict_kind *kind)
{
	return shows_groups(kind) ? &discover_chosen_of(kind)->grouping : &kind->naturals.list[0].grouping;
}

/* True if every group of `fine` is within one of `coarse`. */
static bool refines(const struct grouping *fine, const struct grouping *coarse)
{
	for (uint32_t i = 0; i < fine->nodes; i++)
		for (uint32_t j = 0; j < i; j++)
			if (fine->group_of[i] == fine->group_of[j] && coarse->group_of[i] != coarse->group_of[j])
				return false;
	return fine->count > 1;
}

/*
 * Judges the fastest grouping beside the noise: if a host is alone in it, or a group of it is several of the evidence,
 * no job should be sure. VERDICT_NONE: noise would do as well.
 */
static enum esp_status judge_fastest(struct verdict_kind *kind, uint32_t pick, const struct verdict_wish *wish,
                                     enum verdict_word *out, struct error *err)
{
	const struct grouping *fastest = &kind->naturals.list[pick].grouping;
	enum esp_status status = ESP_OK;

	*out = VERDICT_NONE;
	if (pick > 0)
		status = discover_natural_weigh(&kind->confirmed, fastest->count, wish->seed, &kind->naturals, err);
	if (status != ESP_OK || pick == 0)
		return status;
	if (discover_natural_stands(&kind->naturals, pick))
		status = discover_natural_word(&kind->confirmed, fastest, out, err);
	else if (discover_natural_hints(&kind->naturals, pick))
		*out = VERDICT_UNSURE;
	if (*out > VERDICT_UNSURE && !grouping_equal(fastest, evident(kind)) &&
	    (discover_has_lonely(fastest) || refines(evident(kind), fastest)))
		*out = VERDICT_UNSURE;
	return status;
}

/* The evidence has the last word where it is sure, or sees groups and the other judge only has a hint of some. */
static bool is_evident(const struct verdict_kind *kind, enum verdict_word word, uint32_t pick,
                       enum verdict_word by_time)
{
	return word == VERDICT_SURE || by_time == VERDICT_NONE ||
	       (word != VERDICT_NONE && !discover_natural_stands(&kind->naturals, pick));
}

static void take_source_of(struct verdict *verdict, const struct verdict_kind *kind)
{
	for (uint32_t i = 0; i < kind->naturals.count; i++)
		if (grouping_equal(&kind->naturals.list[i].grouping, &verdict->grouping)) {
			verdict->source = kind->naturals.list[i].source;
			verdict->polished = kind->naturals.list[i].polished;
			verdict->saves = discover_natural_saves(&kind->naturals, i);
		}
	verdict->noise_saves = kind->naturals.noise_saves;
}

/*
 * Two judges: the evidence, which looks at all pairs at once and sees small gaps under hosts' own costs, and the time
 * that is saved, which sees groups that are far apart, however differently.
 */
static enum esp_status choose_free(const struct survey *survey, const struct verdict_wish *wish,
                                   struct verdict *verdict, struct error *err)
{
	uint32_t which = clearest(verdict);

	if (which == SURVEY_KINDS)
		return error_set(err, ESP_EINVAL, "no distance between any two of the hosts is known");
	struct verdict_kind *kind = &verdict->kinds[which];
	enum verdict_word word = VERDICT_NONE, by_time = VERDICT_NONE;
	enum esp_status status = ESP_OK;
	if (kind->candidates.count > 0)
		status = judge_evidence(survey, wish, which, kind, &word, err);
	uint32_t pick = discover_natural_pick(&kind->naturals);
	if (status == ESP_OK)
		status = judge_fastest(kind, pick, wish, &by_time, err);
	if (status != ESP_OK)
		return status;
	const struct grouping *fastest = &kind->naturals.list[pick].grouping, *seen = evident(kind);
	bool same = grouping_equal(fastest, seen);
	verdict->word = same ? (word > by_time ? word : by_time) : is_evident(kind, word, pick, by_time) ? word : by_time;
	status = take_grouping(verdict, which, same || is_evident(kind, word, pick, by_time) ? seen : fastest, err);
	if (status == ESP_OK)
		take_source_of(verdict, kind);
	return status;
}

/* ---- all of it ---- */

uint32_t discover_verdict_groups_by(const struct verdict *verdict, enum survey_kind kind)
{
	const struct verdict_kind *one = &verdict->kinds[kind];

	return one->candidates.count == 0 ? 0 : shows_groups(one) ? discover_chosen_of(one)->grouping.count : 1;
}

static double compare_kinds(const struct verdict *verdict)
{
	const struct verdict_kind *a = &verdict->kinds[SURVEY_LATENCY], *b = &verdict->kinds[SURVEY_INVERSE_BANDWIDTH];

	if (a->candidates.count == 0 || b->candidates.count == 0)
		return NAN;
	return discover_quality_ami(&discover_chosen_of(a)->grouping, &discover_chosen_of(b)->grouping);
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
		status = wish->groups ? choose_told(&verdict, wish, err) : choose_free(survey, wish, &verdict, err);
	if (status == ESP_OK)
		status = discover_verdict_measure(survey, &verdict, err);
	if (status != ESP_OK) {
		discover_verdict_fini(&verdict);
		return status;
	}
	verdict.kinds_agree = compare_kinds(&verdict);
	*out = verdict;
	return ESP_OK;
}
