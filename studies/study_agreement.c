/*
 * study_agreement.c - espalier-study discover agreement: do different runs find the same groups?
 */
#include <stdio.h>

#include "report/table.h"
#include "studies/discover_agreement.h"
#include "studies/study_discover.h"
#include "tools/sim/sim_pace.h"

#define COMMAND "discover agreement"

/* Over all cases. */
struct tally {
	struct agreement_result mean;
	uint32_t more[2]; /* by alpha: cases in which its runs agreed more than the other's */
};

struct given {
	struct sim_discover common;
	uint64_t runs, cases;
	double elasticity;
	struct tally same, fresh;
};

static enum esp_status run_case(const struct given *given, const struct agreement_config *config, struct tally *tally, struct error *err)
{
	struct agreement_result result;
	enum esp_status status = agreement_run(config, &result, err);

	if (status != ESP_OK)
		return status;
	tally->mean.groups = result.groups;
	for (int a = 0; a < 2; a++) {
		tally->mean.between[a] += result.between[a] / (double)given->cases;
		tally->mean.truth[a] += result.truth[a] / (double)given->cases;
		tally->mean.rows[a] += result.rows[a] / (double)given->cases;
		tally->more[a] += result.between[a] > result.between[1 - a];
	}
	return ESP_OK;
}

static enum esp_status run_all(struct given *given, struct error *err)
{
	enum esp_status status = sim_discover_calibrate(&given->common, err);
	struct sim_pace pace;
	struct agreement_config config = {
		.spec = given->common.spec, .noise = (enum reading_noise)given->common.noise, .level = given->common.taken_level,
		.embed = sim_discover_embed(&given->common), .keep_outliers = given->common.keep_outliers, .elasticity = given->elasticity, .runs = (uint32_t)given->runs,
		.watch = {&pace, sim_pace_step}};

	sim_pace_begin(&pace, COMMAND, 2 * given->runs * given->cases);
	for (uint64_t i = 0; i < given->cases && status == ESP_OK; i++) {
		config.seed = given->common.seed + i;
		config.fresh = false;
		status = run_case(given, &config, &given->same, err);
		config.fresh = true;
		if (status == ESP_OK)
			status = run_case(given, &config, &given->fresh, err);
	}
	sim_pace_end(&pace);
	return status;
}

static enum esp_status print_table(const struct given *given)
{
	static const char *const headers[] = {"runs differ in", "alpha", "agreement", "more in", "with racks", "with rows", NULL};
	const struct tally *tallies[2] = {&given->same, &given->fresh};
	struct table table;

	table_init(&table, headers);
	for (int i = 0; i < 2; i++) {
		for (int a = 0; a < 2; a++) {
			table_cell(&table, "%s", i == 0 ? "seeds" : "readings");
			table_cell(&table, "%d", a + 1);
			table_cell(&table, "%.3f", tallies[i]->mean.between[a]);
			table_cell(&table, "%u", tallies[i]->more[a]);
			table_cell(&table, "%.3f", tallies[i]->mean.truth[a]);
			table_cell(&table, "%.3f", tallies[i]->mean.rows[a]);
		}
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static void put_tally(struct json *json, const char *differ, const struct tally *tally)
{
	for (int a = 0; a < 2; a++) {
		json_object_begin(json);
		json_put_string(json, "differ", differ);
		json_put_u64(json, "alpha", (uint64_t)a + 1);
		json_put_double(json, "agreement", tally->mean.between[a]);
		json_put_u64(json, "more_in", tally->more[a]);
		json_put_double(json, "with_racks", tally->mean.truth[a]);
		json_put_double(json, "with_rows", tally->mean.rows[a]);
		json_object_end(json);
	}
}

static enum esp_status print_json(const struct given *given)
{
	struct json json;

	sim_discover_json_begin(&given->common, &json, 2);
	sim_discover_json_noise(&given->common, &json);
	json_put_u64(&json, "runs", given->runs);
	json_put_u64(&json, "cases", given->cases);
	json_put_u64(&json, "groups", given->same.mean.groups);
	json_key(&json, "results");
	json_array_begin(&json);
	put_tally(&json, "seeds", &given->same);
	put_tally(&json, "readings", &given->fresh);
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

static int run(int argc, char **argv)
{
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_DATACENTER), .runs = 100, .cases = 1, .elasticity = 2};
	char text[SIM_DISCOVER_TEXT];
	struct error err = {0};
	const struct cli_option options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		{"runs", 'r', CLI_U64, &given.runs, "N", "of each case (default 100)", .min = 2, .max = 10000},
		{"cases", 'c', CLI_U64, &given.cases, "N", "made-up regions, over which means are taken (default 1)", .min = 1, .max = 10000},
		{"elasticity", 'e', CLI_DOUBLE, &given.elasticity, "E", "of the sizes of groups, 1 to 2 (default 2)"},
		{0},
	};
	const struct cli_usage usage = {COMMAND, "",
	                                "Groups the same machines many times, into as many groups as the root of their number, and prints how well the\n"
	                                "groupings agree: adjusted mutual information, mean over all pairs of runs. Runs differ in the seeds of\n"
	                                "embedding and grouping, or in traffic and readings too. \"more in\": cases in which the runs of this exponent\n"
	                                "agreed more than those of the other. Figure 5 of PLink.",
	                                options, 0, 0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);

	if (exit_status < 0 && !(given.elasticity >= 1 && given.elasticity <= 2))
		exit_status = cli_usage_error(COMMAND ": --elasticity is from 1 to 2");
	if (exit_status >= 0)
		return exit_status;
	enum esp_status status = run_all(&given, &err);
	if (status == ESP_OK && !given.common.json)
		printf("%s; %llu runs of each of %llu into %u groups, noise %s at level %.4f\n", sim_discover_text(&given.common, text),
		       (unsigned long long)given.runs, (unsigned long long)given.cases, given.same.mean.groups, sim_discover_noises[given.common.noise], given.common.taken_level);
	if (status == ESP_OK)
		status = given.common.json ? print_json(&given) : print_table(&given);
	return cli_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_agreement = {"agreement", "do different runs find the same groups? (figure 5)", run};
