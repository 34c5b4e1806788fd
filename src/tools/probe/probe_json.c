/*
 * probe_json.c - the outcome of espalier probe for programs, as JSON.
 */
#include <math.h>

#include "report/json.h"
#include "tools/probe/probe_outcome.h"

static void put_matrix(struct json *json, const struct matrix *matrix)
{
	json_array_begin(json);
	for (uint32_t i = 0; i < matrix->size; i++) {
		json_array_begin(json);
		for (uint32_t j = 0; j < matrix->size; j++)
			json_double(json, matrix_get(matrix, i, j)); /* null: not known */
		json_array_end(json);
	}
	json_array_end(json);
}

static void put_rate(struct json *json, const char *key, double rate)
{
	json_key(json, key);
	if (rate > 0)
		json_double(json, rate);
	else
		json_none(json);
}

static void put_hosts(struct json *json, const struct probe_outcome *outcome)
{
	const struct found *found = &outcome->found;

	json_key(json, "hosts");
	json_array_begin(json);
	for (uint32_t i = 0; i < found->survey.count; i++) {
		json_object_begin(json);
		json_put_string(json, "name", found->survey.names[i]);
		json_put_u64(json, "group", found->grouping.group_of[i]);
		json_put_double(json, "belonging", outcome->verdict.belonging[i]);
		put_rate(json, "out_bytes_per_second", found->rate_out[i]);
		put_rate(json, "in_bytes_per_second", found->rate_in[i]);
		json_object_end(json);
	}
	json_array_end(json);
	json_key(json, "left_out");
	json_array_begin(json);
	for (uint32_t i = 0; i < found->lost_count; i++) {
		json_object_begin(json);
		json_put_string(json, "name", found->lost[i].name);
		json_put_string(json, "why", probe_fate_text(found->lost[i].fate));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_groups(struct json *json, const struct found *found)
{
	json_key(json, "groups");
	json_array_begin(json);
	for (uint32_t g = 0; g < found->grouping.count; g++) {
		json_object_begin(json);
		json_key(json, "hosts");
		json_array_begin(json);
		for (uint32_t i = 0; i < found->survey.count; i++)
			if (found->grouping.group_of[i] == g)
				json_text(json, found->survey.names[i]);
		json_array_end(json);
		put_rate(json, "out_bytes_per_second", found->uplink_out[g]);
		put_rate(json, "in_bytes_per_second", found->uplink_in[g]);
		json_object_end(json);
	}
	json_array_end(json);
}

/* The number of groups that each kind of distance shows by itself; null: it was not measured. */
static void put_groups_by(struct json *json, const struct verdict *verdict)
{
	json_key(json, "groups_by");
	json_object_begin(json);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++) {
		uint32_t groups = discover_verdict_groups_by(verdict, (enum survey_kind)k);

		json_key(json, survey_kind_name((enum survey_kind)k));
		if (groups > 0)
			json_u64(json, groups);
		else
			json_none(json);
	}
	json_object_end(json);
}

static void put_verdict(struct json *json, const struct probe_outcome *outcome)
{
	const struct verdict *verdict = &outcome->verdict;
	const struct candidates_choice *choice = verdict->grouping.count > 1 ? &verdict->kinds[verdict->kind].choice : NULL;
	char text[PROBE_SENTENCE];

	json_key(json, "verdict");
	json_object_begin(json);
	json_put_string(json, "word", discover_verdict_word_text(verdict->word));
	json_put_string(json, "sentence", probe_tool_say_sure(outcome, text));
	json_put_string(json, "by", survey_kind_name(verdict->kind));
	json_put_string(json, "source", probe_tool_say_source(outcome, text)[0] ? text : NULL);
	json_put_double(json, "within", verdict->within);
	json_put_double(json, "across", verdict->across);
	json_put_double(json, "evidence", choice ? choice->sure : NAN);
	json_put_double(json, "agreement", choice ? choice->agreement : NAN);
	put_groups_by(json, verdict);
	json_put_double(json, "kinds_agree", verdict->kinds_agree);
	json_put_string(json, "least_belonging", outcome->found.survey.names[verdict->doubtful]);
	json_object_end(json);
	if (!outcome->truth.known)
		return;
	json_key(json, "truth");
	json_object_begin(json);
	json_put_u64(json, "groups", outcome->truth.grouping.count);
	json_put_double(json, "adjusted_mutual_information", outcome->truth.ami);
	json_key(json, "paia");
	json_object_begin(json);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++)
		json_put_double(json, survey_kind_name((enum survey_kind)k), outcome->truth.paia[k]);
	json_object_end(json);
	json_object_end(json);
}

void probe_tool_put_keys(const struct probe_outcome *outcome, bool with_matrices, struct json *json)
{
	char text[PROBE_SENTENCE];

	json_put_u64(json, "version", 1);
	json_put_double(json, "seconds", outcome->found.seconds);
	put_hosts(json, outcome);
	put_groups(json, &outcome->found);
	put_verdict(json, outcome);
	for (uint32_t k = 0; k < SURVEY_KINDS && with_matrices; k++) {
		if (outcome->found.survey.matrices[k].size == 0)
			continue;
		json_key(json, probe_tool_matrix_key((enum survey_kind)k));
		put_matrix(json, &outcome->found.survey.matrices[k]);
	}
	json_put_string(json, "between_groups", probe_tool_say_uplinks(outcome, text)[0] ? text : NULL);
	json_put_string(json, "plan_of_large_sums", outcome->plan[0] ? outcome->plan : NULL);
	json_put_string(json, "no_topology", outcome->has_rates ? NULL : outcome->rates_missing);
}

const char *probe_tool_matrix_key(enum survey_kind kind)
{
	return kind == SURVEY_LATENCY ? "latency_seconds" : "seconds_per_byte";
}

enum esp_status probe_tool_print_json(const struct probe_outcome *outcome, FILE *file)
{
	struct json json;

	json_init(&json, file);
	json.flat_depth = 2;
	json_object_begin(&json);
	probe_tool_put_keys(outcome, true, &json);
	json_object_end(&json);
	return json_fini(&json);
}
