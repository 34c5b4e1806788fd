#include "tune/tuner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE 1000u           /* the median, in weights                                       */
#define SHIFTED_PERCENT 25u /* a weight that differs so much from the one dealt by          */
#define WORTH_PERCENT 10u   /* and so much, once steps have changed; half of it in bytes: less is not worth it */
#define WEIGHT_LEAST 400u   /* a node that is slower than this has no master in any case */
#define DOUBTFUL 500u       /* a weight below this is that of a slow node whatever the time */
#define FAST 1500u          /* and one above this that of a fast one */
#define EXPLAINED_PERCENT 135u
#define DISTRUST 64u        /* windows */
#define WORSE_PERCENT 10u   /* steps that are so much longer than before: Quicktune was wrong */
#define COST_BYTES (UINT64_C(1) << 20)

typedef unsigned __int128 wide;

static bool allocate(struct tuner *tuner, uint32_t workers)
{
	tuner->rates = calloc(workers, sizeof(*tuner->rates));
	tuner->cross = calloc(workers, sizeof(*tuner->cross));
	tuner->doubted = calloc(workers, sizeof(*tuner->doubted));
	tuner->doubted_cross = calloc(workers, sizeof(*tuner->doubted_cross));
	tuner->dealt = calloc(workers, sizeof(*tuner->dealt));
	tuner->weights = calloc(workers, sizeof(*tuner->weights));
	tuner->cross_weights = calloc(workers, sizeof(*tuner->cross_weights));
	tuner->sorted = calloc(workers, sizeof(*tuner->sorted));
	tuner->is_light = calloc(workers, sizeof(*tuner->is_light));
	tuner->scratch.bytes = calloc(workers, sizeof(*tuner->scratch.bytes));
	tuner->scratch.blame = calloc(workers, sizeof(*tuner->scratch.blame));
	tuner->scratch.tried = calloc(workers, sizeof(*tuner->scratch.tried));
	return tuner->rates && tuner->cross && tuner->doubted && tuner->doubted_cross && tuner->dealt && tuner->weights &&
	       tuner->cross_weights && tuner->sorted && tuner->is_light && tuner->scratch.bytes && tuner->scratch.blame &&
	       tuner->scratch.tried;
}

enum esp_status tuner_init(struct tuner *tuner, const uint32_t *group_of, uint32_t workers, struct error *err)
{
	struct tuner made = {0};
	enum esp_status status = plan_masters_init(&made.masters, group_of, workers, 0, err);

	if (status == ESP_OK && (!allocate(&made, workers) || plan_masters_copy(&made.before, &made.masters) != ESP_OK))
		status = error_set(err, ESP_ENOMEM, "no memory to tune %u nodes", workers);
	if (status != ESP_OK) {
		tuner_fini(&made);
		return status;
	}
	for (uint32_t i = 0; i < workers; i++)
		made.dealt[i] = ONE;
	tune_watch_init(&made.watch);
	*tuner = made;
	return ESP_OK;
}

void tuner_fini(struct tuner *tuner)
{
	plan_masters_fini(&tuner->masters);
	plan_masters_fini(&tuner->before);
	free(tuner->rates);
	free(tuner->cross);
	free(tuner->doubted);
	free(tuner->doubted_cross);
	free(tuner->dealt);
	free(tuner->weights);
	free(tuner->cross_weights);
	free(tuner->sorted);
	free(tuner->is_light);
	free(tuner->scratch.bytes);
	free(tuner->scratch.blame);
	free(tuner->scratch.tried);
	*tuner = (struct tuner){0};
}

/* ---- rates ---- */

/* The mean of what was known, `weight` times, and what is new. 0: not known. */
static uint64_t mix(uint64_t before, uint64_t now, unsigned weight)
{
	if (before == 0 || now == 0)
		return before + now;
	return (uint64_t)(((wide)before * weight + now) / (weight + 1));
}

static void mix_rates(uint64_t *rates, uint64_t *cross, const struct tune_sample *sample, bool afresh, unsigned weight)
{
	for (uint32_t i = 0; i < sample->nodes; i++) {
		rates[i] = mix(afresh ? 0 : rates[i], tune_node_rate(sample, i), weight);
		cross[i] = mix(afresh ? 0 : cross[i], sample->at[i].cross_rate, weight);
	}
}

static bool is_trigger(enum tune_verdict verdict)
{
	return verdict == TUNE_SLOWER || verdict == TUNE_FASTER || verdict == TUNE_SHIFTED;
}

/* Windows in doubt are kept apart: they are all that counts if the change lasts, and forgotten if not. */
static void take_rates(struct tuner *tuner, const struct tune_sample *sample, enum tune_verdict verdict,
                       bool was_in_doubt)
{
	size_t bytes = sample->nodes * sizeof(*tuner->rates);

	if (verdict == TUNE_STEADY || verdict == TUNE_PAUSED) {
		mix_rates(tuner->rates, tuner->cross, sample, !tuner->has_rates, 3);
		tuner->has_rates = true;
	}
	if (verdict != TUNE_STEADY)
		mix_rates(tuner->doubted, tuner->doubted_cross, sample, !was_in_doubt, 1);
	if (is_trigger(verdict)) {
		memcpy(tuner->rates, tuner->doubted, bytes);
		memcpy(tuner->cross, tuner->doubted_cross, bytes);
	}
}

static bool differs(uint64_t a, uint64_t b, unsigned percent)
{
	uint64_t less = a < b ? a : b, more = a < b ? b : a;

	return more * 100 >= less * (100 + percent);
}

/* Is a node's weight another than the one that masters were dealt by? */
static bool weights_differ(const struct tuner *tuner, unsigned percent)
{
	for (uint32_t i = 0; i < tuner->masters.workers; i++) {
		uint64_t now = tuner->weights[i] > WEIGHT_LEAST ? tuner->weights[i] : WEIGHT_LEAST;
		uint64_t then = tuner->dealt[i] > WEIGHT_LEAST ? tuner->dealt[i] : WEIGHT_LEAST;

		if (differs(now, then, percent))
			return true;
	}
	return false;
}

/*
 * How long should a window have taken, if no node was slow? As long as its busiest node needs. If it did not take much
 * longer, low rates are no sign of a slow node: a node with few masters has few connections, whose other ends are busy,
 * and shows less than it can. Without this a node that has lost its masters once would look slow for ever. A node that
 * has as much to do as the others is believed.
 */
static void judge_time(struct tuner *tuner, const struct tune_sample *sample, uint64_t time)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < sample->nodes; i++) {
		const struct tune_node *node = &sample->at[i];

		most = node->sent_bytes > most ? node->sent_bytes : most;
		most = node->received_bytes > most ? node->received_bytes : most;
	}
	wide wide_now = (wide)time * COST_BYTES / most;
	uint64_t now = wide_now > UINT64_MAX / 1000 ? UINT64_MAX / 1000 : (uint64_t)wide_now,
	         known = tuner->scale + tuner->scale / 100;
	/* The best that was seen, but it may become worse in time. */
	tuner->scale = tuner->scale == 0 || now < known ? now : known;
	tuner->distrust -= tuner->distrust > 0;
	tuner->is_explained = tuner->distrust == 0 && now <= tuner->scale / 100 * EXPLAINED_PERCENT;
	for (uint32_t i = 0; i < sample->nodes; i++) {
		uint64_t sent = sample->at[i].sent_bytes, received = sample->at[i].received_bytes;

		tuner->is_light[i] = (sent > received ? sent : received) < most / 10 * 9;
	}
}

/* Rates into weights; returns the median. */
static uint64_t level(struct tuner *tuner)
{
	uint64_t median = tune_level(tuner->weights, tuner->masters.workers, tuner->sorted);

	for (uint32_t i = 0; tuner->is_explained && i < tuner->masters.workers; i++) {
		bool seems_slow = tuner->weights[i] >= DOUBTFUL && tuner->weights[i] < ONE && tuner->is_light[i];
		bool seems_fast = tuner->weights[i] > ONE && tuner->weights[i] <= FAST;

		if (seems_slow || seems_fast)
			tuner->weights[i] = ONE;
	}
	return median;
}

static bool has_shifted(struct tuner *tuner, const struct tune_sample *sample)
{
	for (uint32_t i = 0; i < sample->nodes; i++)
		tuner->weights[i] = tune_node_rate(sample, i);
	(void)level(tuner);
	return weights_differ(tuner, SHIFTED_PERCENT);
}

/* Weights of nodes by smoothed rates; returns the median rate. */
static uint64_t weigh(struct tuner *tuner)
{
	uint32_t nodes = tuner->masters.workers;

	memcpy(tuner->weights, tuner->rates, nodes * sizeof(*tuner->rates));
	return level(tuner);
}

/*
 * Weights towards other groups: the average of a group's members, as a member without a master now has nothing to send
 * there and could all the same.
 */
static void weigh_groups(struct tuner *tuner)
{
	const struct plan_masters *masters = &tuner->masters;
	uint64_t *by_group = tuner->cross_weights;

	memset(by_group, 0, masters->workers * sizeof(*by_group));
	for (uint32_t i = 0; i < masters->workers; i++)
		by_group[masters->group_of[i]] += tuner->cross[i] / masters->group_size[masters->group_of[i]];
	(void)tune_level(by_group, masters->groups, tuner->sorted);
	/* From groups to nodes, within the same memory. */
	memcpy(tuner->sorted, by_group, masters->groups * sizeof(*by_group));
	for (uint32_t i = 0; i < masters->workers; i++)
		tuner->cross_weights[i] = tuner->sorted[masters->group_of[i]];
}

/* ---- decisions ---- */

static uint32_t count_moved(const struct plan_masters *a, const struct plan_masters *b)
{
	uint32_t moved = 0;

	for (uint32_t s = 0; s < a->slots; s++) {
		moved += a->global_group[s] != b->global_group[s];
		for (uint32_t g = 0; g < a->groups; g++)
			moved += plan_masters_local(a, g, s) != plan_masters_local(b, g, s);
	}
	return moved;
}

/* Two tables of the same size change their contents. */
static void swap_masters(struct tuner *tuner)
{
	struct plan_masters kept = tuner->masters;

	tuner->masters = tuner->before;
	tuner->before = kept;
}

static void remember_masters(struct tuner *tuner)
{
	const struct plan_masters *from = &tuner->masters;

	memcpy(tuner->before.global_group, from->global_group, from->slots * sizeof(*from->global_group));
	memcpy(tuner->before.local_master, from->local_master,
	       (size_t)from->slots * from->groups * sizeof(*from->local_master));
}

static bool loads_differ(const struct plan_masters *a, const struct plan_masters *b)
{
	for (uint32_t i = 0; i < a->workers; i++) {
		if (differs(plan_masters_load(a, i), plan_masters_load(b, i), WORTH_PERCENT / 2))
			return true;
	}
	return false;
}

/*
 * A node that has recovered has few masters, and a node with little to send shows less than it can: its peers are busy
 * with each other. So its rate is a lower bound, and it is given half of the difference to the median on trust. If that
 * is too much, steps become longer, and it is taken back.
 */
static void trust_risen(struct tuner *tuner)
{
	for (uint32_t i = 0; i < tuner->masters.workers; i++) {
		uint64_t weight = tuner->weights[i];

		if (weight < ONE && weight > tuner->dealt[i] && differs(weight, tuner->dealt[i], SHIFTED_PERCENT))
			tuner->weights[i] = (weight + ONE) / 2;
	}
}

static enum tune_act deal_anew(struct tuner *tuner, struct tune_report *out)
{
	if (!weights_differ(tuner, WORTH_PERCENT)) {
		tune_watch_accept(&tuner->watch);
		return TUNE_NOTHING;
	}
	remember_masters(tuner);
	trust_risen(tuner);
	weigh_groups(tuner);
	/* The node's own memory ran out: its table would be another than that of the others. */
	if (tune_quick(&tuner->masters, tuner->weights, tuner->cross_weights, TUNE_COUNT_ALL) != ESP_OK) {
		tuner->broken = true;
		return TUNE_NOTHING;
	}
	memcpy(tuner->dealt, tuner->weights, tuner->masters.workers * sizeof(*tuner->dealt));
	if (!loads_differ(&tuner->masters, &tuner->before)) { /* others would be master of the same number of slots */
		swap_masters(tuner);
		tune_watch_accept(&tuner->watch);
		return TUNE_NOTHING;
	}
	out->moved = count_moved(&tuner->masters, &tuner->before);
	tuner->fine = (struct tune_fine){0};
	tuner->cost_before = out->cost;
	tune_watch_changed(&tuner->watch);
	return TUNE_QUICK;
}

static enum tune_act take_back(struct tuner *tuner, struct tune_report *out)
{
	swap_masters(tuner);
	out->moved = count_moved(&tuner->masters, &tuner->before);
	tuner->cost_before = 0;
	tuner->distrust = DISTRUST;
	tune_watch_changed(&tuner->watch);
	return TUNE_TAKEN_BACK;
}

static enum tune_act move_few(struct tuner *tuner, const struct tune_sample *sample, uint64_t median,
                              struct tune_report *out)
{
	/* Weights are thousandths of the median: rates that do not scatter. */
	for (uint32_t i = 0; i < sample->nodes; i++) {
		wide rate = (wide)tuner->weights[i] * median / ONE;

		tuner->sorted[i] = rate > 0 ? (uint64_t)rate : 1;
	}
	tune_fine_step(&tuner->fine, &tuner->masters, sample, tuner->sorted, &tuner->scratch, &out->move);
	out->moved = out->move.moved;
	if (out->moved == 0)
		return TUNE_NOTHING;
	tune_watch_changed(&tuner->watch);
	return TUNE_FINE;
}

static void describe_rates(const struct tuner *tuner, struct tune_report *out)
{
	for (uint32_t i = 0; i < tuner->masters.workers; i++) {
		if (i == 0 || tuner->rates[i] < out->slowest_rate) {
			out->slowest = i;
			out->slowest_rate = tuner->rates[i];
		}
	}
}

bool tuner_step(struct tuner *tuner, const struct tune_sample *sample, struct tune_report *out)
{
	uint64_t time = tune_sample_time(sample), bytes = tune_sample_bytes(sample);
	wide cost = bytes > 0 ? (wide)time * COST_BYTES / bytes : 0;

	*out = (struct tune_report){.verdict = TUNE_SETTLING, .reference = tuner->watch.reference};
	if (cost == 0 || cost > UINT64_MAX / 1000 || tuner->broken)
		return false;
	tuner->steps++;
	out->cost = (uint64_t)cost;
	bool was_in_doubt = tuner->watch.doubts > 0;
	if (tuner->watch.skip == 0)
		judge_time(tuner, sample, time);
	out->verdict = tune_watch_step(&tuner->watch, out->cost, has_shifted(tuner, sample));
	if (out->verdict == TUNE_SETTLING)
		return false;
	take_rates(tuner, sample, out->verdict, was_in_doubt);
	if (out->verdict == TUNE_DOUBT)
		return false;
	out->median_rate = weigh(tuner);
	describe_rates(tuner, out);

	bool is_worse = tuner->cost_before > 0 && out->cost > tuner->cost_before + tuner->cost_before / 100 * WORSE_PERCENT;
	tuner->cost_before = is_worse ? tuner->cost_before : 0;
	if (is_worse)
		out->act = take_back(tuner, out);
	else if (is_trigger(out->verdict))
		out->act = deal_anew(tuner, out);
	else if (!sample->is_chain)
		out->act = move_few(tuner, sample, out->median_rate, out);
	if (out->act != TUNE_NOTHING)
		tuner->has_rates = false;
	return out->act != TUNE_NOTHING;
}

uint64_t tuner_rate(const struct tuner *tuner, uint32_t node)
{
	return tuner->rates[node];
}

bool tuner_needs_masters(const struct tuner *tuner)
{
	const struct plan_masters *masters = &tuner->masters;
	uint64_t nodes = masters->workers, least = ONE, with = 0;

	assert(nodes > 0);

	/* In thousandths of what a node of weight 1000 takes for one chunk of every slot. */
	for (uint32_t i = 0; i < nodes; i++) {
		uint64_t time = plan_masters_load(masters, i) * ONE / tuner->dealt[i];

		least = tuner->dealt[i] < least ? tuner->dealt[i] : least;
		with = time > with ? time : with;
	}
	uint64_t without = 2 * (nodes - 1) * masters->slots * ONE / nodes / least;
	return with + with / 100 * WORTH_PERCENT < without;
}

/* ---- words ---- */

static const char *describe_change(const struct tune_report *report, char text[64])
{
	double times = report->reference > 0 ? (double)report->cost / (double)report->reference : 1;

	if (report->verdict == TUNE_SHIFTED)
		snprintf(text, 64, "steps take as long as before");
	else
		snprintf(text, 64, "steps take %.2f times as long as before", times);
	return text;
}

const char *tuner_explain(const struct tune_report *report, char text[TUNE_TEXT])
{
	double part = report->median_rate > 0 ? 100.0 * (double)report->slowest_rate / (double)report->median_rate : 100;
	char change[64];

	switch (report->act) {
	case TUNE_QUICK:
		snprintf(
			text, TUNE_TEXT, "quicktune: %s, rank %u carries %.0f %% of what most do (%.1f MB/s): %u masters moved",
			describe_change(report, change), report->slowest, part, (double)report->slowest_rate / 1e6, report->moved);
		break;
	case TUNE_FINE:
		snprintf(text, TUNE_TEXT, "finetune: %u master%s (%u global) moved from rank %u (blame %.2f) to rank %u (%.2f)",
		         report->moved, report->moved == 1 ? "" : "s", report->move.global, report->move.from,
		         report->move.from_blame / 1000.0, report->move.to, report->move.to_blame / 1000.0);
		break;
	case TUNE_TAKEN_BACK:
		snprintf(text, TUNE_TEXT, "quicktune has made steps longer: %u masters moved back", report->moved);
		break;
	case TUNE_NOTHING:
		snprintf(text, TUNE_TEXT, "nothing is moved");
		break;
	}
	return text;
}
