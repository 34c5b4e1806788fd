/*
 * probe_words.c - sentences and numbers that all reports of espalier probe have in common.
 */
#include <math.h>
#include <stdlib.h>

#include "report/complain.h"
#include "tools/probe/probe_outcome.h"

const char *probe_tool_rate_text(double rate, char text[PROBE_NUMBER])
{
	static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
	double value = rate * 8;
	uint32_t unit = 0;

	if (!isfinite(rate) || rate <= 0) {
		snprintf(text, PROBE_NUMBER, "-");
		return text;
	}
	for (; value >= 999.5 && unit < 4; unit++)
		value /= 1000;
	snprintf(text, PROBE_NUMBER, value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

const char *probe_tool_distance_text(enum survey_kind kind, double distance, char text[PROBE_NUMBER])
{
	if (!isfinite(distance))
		snprintf(text, PROBE_NUMBER, "-");
	else if (kind == SURVEY_INVERSE_BANDWIDTH)
		return probe_tool_rate_text(distance > 0 ? 1 / distance : 0, text);
	else if (distance < 0.9995e-3)
		snprintf(text, PROBE_NUMBER, distance < 99.95e-6 ? "%.1f us" : "%.0f us", distance * 1e6);
	else
		snprintf(text, PROBE_NUMBER, "%.2f ms", distance * 1e3);
	return text;
}

static const char *kind_noun(enum survey_kind kind)
{
	return kind == SURVEY_LATENCY ? "latency" : "bandwidth";
}

static const char *say_told(const struct probe_outcome *outcome, char text[PROBE_SENTENCE])
{
	snprintf(text, PROBE_SENTENCE, "%u group%s, as you asked for: the nearest inside that was found by %s",
	         outcome->verdict.grouping.count, plural(outcome->verdict.grouping.count),
	         kind_noun(outcome->verdict.kind));
	return text;
}

/*
 * A clause about the other kind of distance. If it shows no groups, or other ones, that is no reason to doubt the
 * groups that the first kind shows.
 */
static void say_other_kind(const struct verdict *verdict, char *text, size_t size)
{
	enum survey_kind other = verdict->kind == SURVEY_LATENCY ? SURVEY_INVERSE_BANDWIDTH : SURVEY_LATENCY;
	uint32_t groups = discover_verdict_groups_by(verdict, other);

	if (groups == 1)
		snprintf(text, size, "; %s alone shows no groups", kind_noun(other));
	else if (groups > 1 && isfinite(verdict->kinds_agree) && verdict->kinds_agree < 0.999)
		snprintf(text, size, "; %s alone, which shows groups less clearly, would make %u others", kind_noun(other),
		         groups);
}

const char *probe_tool_say_sure(const struct probe_outcome *outcome, char text[PROBE_SENTENCE])
{
	const struct verdict *verdict = &outcome->verdict;
	char within[PROBE_NUMBER], across[PROBE_NUMBER];

	if (verdict->word == VERDICT_TOLD)
		return say_told(outcome, text);
	if (verdict->word == VERDICT_NONE) {
		snprintf(text, PROBE_SENTENCE,
		         "no groups: all hosts are about as far from each other, so they are taken as standing behind one "
		         "switch");
		return text;
	}
	probe_tool_distance_text(verdict->kind, verdict->within, within);
	probe_tool_distance_text(verdict->kind, verdict->across, across);
	int written = snprintf(text, PROBE_SENTENCE, "%s: %s is %s within groups and %s between them (medians)",
	                       discover_verdict_word_text(verdict->word), kind_noun(verdict->kind), within, across);
	if (written > 0 && (size_t)written < PROBE_SENTENCE)
		say_other_kind(verdict, text + written, PROBE_SENTENCE - (size_t)written);
	return text;
}

const char *probe_tool_say_source(const struct probe_outcome *outcome, char text[PROBE_SENTENCE])
{
	const struct verdict *verdict = &outcome->verdict;
	int written = 0;

	text[0] = '\0';
	if (verdict->grouping.count < 2)
		return text;
	written = snprintf(text, PROBE_SENTENCE, "%s%s", discover_natural_source_text(verdict->source),
	                   verdict->polished ? ", then swaps and moves" : "");
	if (verdict->word != VERDICT_TOLD && written > 0)
		snprintf(text + written, PROBE_SENTENCE - (size_t)written,
		         "; a sum by these groups would save %.0f %% of its time by these distances, in noise %.0f %%",
		         verdict->saves * 100, verdict->noise_saves * 100);
	return text;
}

const char *probe_tool_say_lost(const struct probe_outcome *outcome, uint32_t i, char text[PROBE_SENTENCE])
{
	const struct found_lost *lost = &outcome->found.lost[i];

	snprintf(text, PROBE_SENTENCE, "host %s %s. It is left out", lost->name, probe_fate_text(lost->fate));
	return text;
}

/* The hosts' rates together, as a multiple of the rate of the group's uplink. */
static double oversubscription(const struct probe_outcome *outcome, uint32_t group)
{
	const struct found *found = &outcome->found;
	double hosts = 0;

	for (uint32_t i = 0; i < found->survey.count; i++)
		hosts += found->grouping.group_of[i] == group ? found->rate_out[i] : 0;
	return found->uplink_out[group] > 0 ? hosts / found->uplink_out[group] : NAN;
}

const char *probe_tool_say_uplinks(const struct probe_outcome *outcome, char text[PROBE_SENTENCE])
{
	double worst = 0;
	int written = 0;

	text[0] = '\0';
	for (uint32_t g = 0; outcome->has_rates && g < outcome->found.grouping.count && outcome->found.grouping.count > 1;
	     g++)
		worst = fmax(worst, oversubscription(outcome, g));
	if (worst >= 1.3)
		written = snprintf(text, PROBE_SENTENCE, "the ways between groups are oversubscribed %.1f to 1", worst);
	else if (worst > 0)
		written = snprintf(text, PROBE_SENTENCE, "the ways between groups carry nearly all that the hosts can send");
	if (written > 0 && outcome->plan[0])
		snprintf(text + written, PROBE_SENTENCE - (size_t)written,
		         ": with one rank on each host a job sums %u MiB by the plan %s", PROBE_PLAN_MIB, outcome->plan);
	return text;
}

void probe_tool_order(const struct probe_outcome *outcome, uint32_t *out)
{
	uint32_t count = 0;

	for (uint32_t g = 0; g < outcome->verdict.grouping.count; g++)
		for (uint32_t i = 0; i < outcome->verdict.grouping.nodes; i++)
			if (outcome->verdict.grouping.group_of[i] == g)
				out[count++] = i;
}
