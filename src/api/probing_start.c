#include "api/probing_start.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/probing.h"
#include "network/discover/judge_groups.h"
#include "rank/rank.h"
#include "rank/placement.h"

#define START_SECONDS 3.0
#define BANDWIDTH_HOSTS 48u /* with more of them all pairs take longer than a start should */
#define HOSTS_MOST 1024u    /* with more of them grouping takes minutes, at every start */
#define SEED 1u
#define REASON_TEXT 128u
#define NAMES_TEXT 512u
#define NAMES_SHOWN 16u  /* of a group's hosts, in the log */
#define GROUPS_SHOWN 32u

/* How the groups were found, for the log; is_known: by this rank. */
struct reason {
	bool is_known;
	enum verdict_word word;
	enum survey_kind kind;
	double within, across; /* NAN */
};

static enum esp_status group(void *context, const struct survey *survey, struct grouping *out, struct error *err)
{
	const struct verdict_wish wish = {.seed = SEED};
	struct verdict verdict = {0};
	struct reason *reason = context;

	enum esp_status status = discover_verdict_make(survey, &wish, &verdict, err);
	if (status == ESP_OK)
		status = grouping_from(out, verdict.grouping.group_of, survey->count, err);
	if (status == ESP_OK)
		*reason = (struct reason){true, verdict.word, verdict.kind, verdict.within, verdict.across};
	discover_verdict_fini(&verdict);
	return status;
}

static enum esp_status write_text(const struct found *found, char **out_text, size_t *out_length, struct error *err)
{
	FILE *file = open_memstream(out_text, out_length);

	if (!file)
		return error_set(err, ESP_ENOMEM, "no memory for a topology");
	enum esp_status status = probe_found_print_topology(found, NULL, file, err);
	if (status == ESP_OK)
		status = probe_found_print_lost(found, file, err);
	if (fclose(file) != 0 && status == ESP_OK)
		status = error_set(err, ESP_ENOMEM, "no memory for a topology");
	return status;
}

static void warn(struct rank *context, bool tells, const char *what)
{
	if (tells)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "the network is not probed, and plans do without: %s", what);
}

/* "latency 4.3 us within groups, 10.1 us between" */
static const char *reason_text(const struct reason *reason, char text[REASON_TEXT])
{
	bool is_latency = reason->kind == SURVEY_LATENCY;
	double within = is_latency ? reason->within * 1e6 : 8e-6 / reason->within,
	       across = is_latency ? reason->across * 1e6 : 8e-6 / reason->across;

	if (!reason->is_known)
		snprintf(text, REASON_TEXT, "found by a rank that has died since");
	else if (isfinite(within) && isfinite(across))
		snprintf(text, REASON_TEXT, "%s, %s %.1f %s within groups, %.1f between (medians)",
		         discover_verdict_word_text(reason->word), is_latency ? "latency" : "bandwidth", within,
		         is_latency ? "us" : "Mbit/s", across);
	else
		snprintf(text, REASON_TEXT, "%s", discover_verdict_word_text(reason->word));
	return text;
}

/* Its hosts by name, and what they carry alone and together: what plans are chosen by. */
static void tell_group(struct rank *context, const struct found *found, uint32_t group)
{
	char names[NAMES_TEXT] = "", together[96] = "";
	double least = INFINITY, most = 0;
	uint32_t size = 0;
	size_t used = 0;

	for (uint32_t i = 0; i < found->survey.count; i++) {
		if (found->grouping.group_of[i] != group)
			continue;
		least = fmin(least, found->rate_out[i]);
		most = fmax(most, found->rate_out[i]);
		if (size++ < NAMES_SHOWN && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, " %s", found->survey.names[i]);
	}
	if (size > NAMES_SHOWN && used < sizeof(names))
		snprintf(names + used, sizeof(names) - used, " ...");
	if (found->grouping.count > 1)
		snprintf(together, sizeof(together), "; to other groups together %.1f Mbit/s out, %.1f in",
		         found->uplink_out[group] * 8e-6, found->uplink_in[group] * 8e-6);
	log_write(&context->log, LOG_LEVEL_INFO, LOG_NET,
	          "probing: group %u has %u host%s, each with %.1f to %.1f Mbit/s%s:%s", group, size, size == 1 ? "" : "s",
	          least * 8e-6, most * 8e-6, together, names);
}

/* One rank says it for all. */
static void tell(struct rank *context, const struct found *found, const struct reason *reason)
{
	char why[REASON_TEXT];

	for (uint32_t i = 0; i < found->lost_count; i++)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "probing: host %s %s", found->lost[i].name,
		          probe_fate_text(found->lost[i].fate));
	log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "probing: %u hosts in %u group%s, in %.1f s: %s",
	          found->survey.count, found->grouping.count, found->grouping.count == 1 ? "" : "s", found->seconds,
	          reason_text(reason, why));
	for (uint32_t g = 0; g < found->grouping.count && g < GROUPS_SHOWN; g++)
		tell_group(context, found, g);
}

/* Groups that are unsure are timed before they are used. */
static void try_out(struct rank *context, bool tells, bool is_doubted)
{
	struct failure failure = FAILURE_NONE;
	struct placement_trial trial;

	enum esp_status status = rank_try_topology(context, is_doubted, &trial, &failure);
	if (status != ESP_OK && tells)
		log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "probing: the world has failed meanwhile: %s", failure.text);
	else if (status == ESP_OK && tells && trial.was_made)
		log_write(&context->log, LOG_LEVEL_INFO, LOG_NET,
		          "probing: the groups are unsure: a sum of 256 KiB takes %.3f ms by them and %.3f ms without, so they "
		          "are %s", (double)trial.with_ns * 1e-6, (double)trial.without_ns * 1e-6,
		          trial.is_kept ? "used" : "not used");
}

/*
 * It is used if all ranks have the same, which they have unless one had no memory, or died; NULL: this one has nothing.
 */
static void use(struct rank *context, bool tells, bool is_doubted, const struct placement_text *text)
{
	struct failure failure = FAILURE_NONE;
	bool is_used = false;

	enum esp_status status = rank_agree_on_topology(context, text, &is_used, &failure);
	if (status != ESP_OK && tells)
		log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "probing: the world has failed meanwhile: %s", failure.text);
	else if (status == ESP_OK && text && !is_used)
		warn(context, tells, "not all ranks have found the same");
	else if (status == ESP_OK && is_used)
		try_out(context, tells, is_doubted);
}

static void use_found(struct esp_context *given, bool tells, const struct found *found, const struct reason *reason)
{
	struct rank *context = api_context(given);
	struct probing_names names = {0};
	struct error err = {0};
	char *text = NULL;
	size_t length = 0;

	if (tells)
		tell(context, found, reason);
	enum esp_status status = write_text(found, &text, &length, &err);
	if (status == ESP_OK)
		status = probing_names(given, &names, &err);
	/* A rate is unknown: all say so. If only this rank has no memory, the one that tells sees that not all have it. */
	if (status != ESP_OK)
		warn(context, tells, err.text);
	use(context, tells, reason->is_known ? reason->word == VERDICT_UNSURE : tells,
	    status == ESP_OK ? &(struct placement_text){text, length, "that was probed", names.list} : NULL);
	probing_names_fini(&names);
	free(text);
}

static void probe(struct esp_context *given)
{
	struct rank *context = api_context(given);
	struct failure failure = FAILURE_NONE;
	struct comm *ranks = NULL;
	struct error err = {0};
	struct found found = {0};
	struct reason reason = {0};
	bool tells = false;

	if (rank_make_internal_comm(context, &ranks, &failure) != ESP_OK) { /* a rank has died already */
		warn(context, context->rank == 0, failure.text);
		return;
	}
	const struct probing_options options = {
		.ranks = (struct esp_group *)(void *)ranks,
		.latency = true,
		.bandwidth = context->roster.hosts <= BANDWIDTH_HOSTS,
		.seconds = START_SECONDS,
		.seed = SEED,
		.group = group,
		.group_context = &reason,
	};
	enum esp_status status = probing_run(given, &options, &found, &tells, &err);
	(void)esp_group_free(options.ranks);
	if (status == ESP_OK) {
		use_found(given, tells, &found, &reason);
	} else {
		warn(context, context->rank == 0, err.text);
		use(context, tells, false, NULL);
	}
	probe_found_fini(&found);
}

void probing_at_start(struct esp_context *context)
{
	if (!rank_wants_probe(api_context(context)))
		return;
	uint32_t hosts = api_context(context)->roster.hosts;
	char text[160];

	if (hosts > HOSTS_MOST) {
		snprintf(text, sizeof(text),
		         "to group %u hosts takes too long for a start, %u are the most; keep a topology (espalier probe "
		         "--out) and name it",
		         hosts, HOSTS_MOST);
		warn(api_context(context), api_context(context)->rank == 0, text);
	} else if (hosts >= 2)
		probe(context);
	else if (api_context(context)->rank == 0)
		log_write(&api_context(context)->log, LOG_LEVEL_INFO, LOG_NET,
		          "all ranks are on one host: there is no network to probe");
}
