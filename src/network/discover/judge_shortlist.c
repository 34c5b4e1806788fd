/*
 * judge_shortlist.c - the candidates of one kind of distance: how they are made, and which of those with about the same
 * evidence has the fastest plan. Pure.
 */
#include <math.h>

#include "network/discover/choose_grouping.h"
#include "network/discover/judge_parts.h"

/* Which candidates the cost model considers, and the call that it considers. */
#define EVIDENCE_LESS 3.0 /* nats: odds of twenty to one against the best */
#define COMPANY_SHARE 0.8
#define SHORTLIST 16u
#define CALL_BYTES (UINT64_C(100) << 20)

#define MANY_NODES 128u   /* with more, k-means tries few numbers of groups, on a shorter embedding */
#define STEPS_MANY 150u

const struct candidate *discover_chosen_of(const struct verdict_kind *kind)
{
	return &kind->candidates.list[kind->choice.index];
}

/*
 * Latencies are compared by differences, bandwidths by ratios. With many hosts k-means tries the numbers of groups that
 * stand out.
 */
struct candidates_options discover_options_of(const struct verdict_wish *wish, enum survey_kind which,
                                            const struct verdict_kind *kind)
{
	struct candidates_options options = {
		.seed = wish->seed, .groups_least = wish->groups, .groups_most = wish->groups,
		    .ratios = which == SURVEY_INVERSE_BANDWIDTH, .ways = true};

	if (kind->confirmed.size > MANY_NODES && !wish->groups) {
		options.only = kind->counts;
		options.only_count = kind->count_count;
	}
	if (kind->confirmed.size > MANY_NODES) {
		options.embed.restarts = 1;
		options.embed.steps = STEPS_MANY;
	}
	return options;
}

/* The candidates with about as much evidence as the best one. Returns their number. */
static uint32_t shortlist(const struct verdict_kind *kind, const uint32_t **groupings, uint32_t *indices)
{
	double least = discover_chosen_of(kind)->evidence - EVIDENCE_LESS;
	uint32_t count = 0;

	for (uint32_t i = 0; i < kind->candidates.count && count < SHORTLIST; i++) {
		const struct candidate *candidate = &kind->candidates.list[i];
		bool passed_over = candidate->evidence > discover_chosen_of(kind)->evidence; /* discover_prefer_company() */
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
enum esp_status discover_choose_by_cost(const struct survey *survey, const struct verdict_wish *wish,
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
	const struct candidates_options options = discover_options_of(wish, which, kind);
	kind->choice.index = indices[best];
	return discover_candidates_sure(&kind->tamed, &options, &kind->candidates, indices[best], &kind->choice.sure, err);
}

/*
 * By bandwidth a host with a slower or a busy link looks like one in a rack of its own, and the former is more
 * usual: if enough of the evidence is for a grouping without single hosts, that one is chosen. It is not
 * certain then: the host that was moved is a rival.
 */
uint32_t discover_prefer_company(const struct verdict_kind *kind)
{
	uint32_t best = kind->choice.index;
	double least = COMPANY_SHARE * discover_chosen_of(kind)->evidence;

	if (!discover_has_lonely(&discover_chosen_of(kind)->grouping))
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
