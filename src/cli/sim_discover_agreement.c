/*
 * sim_discover_agreement.c - espalier sim discover agreement: do different runs find the same groups?
 */
#include <stdio.h>

#include "base/table.h"
#include "cli/sim_discover.h"
#include "cli/sim_pace.h"
#include "sim/discover_agreement.h"

#define COMMAND "sim discover agreement"

struct given {
	struct sim_discover common;
	uint64_t runs;
	double elasticity;
	struct agreement_result same, fresh;
};

static enum esp_status run_both(struct given *given, struct error *err)
{
	enum esp_status status = sim_discover_calibrate(&given->common, err);
	struct sim_pace pace;
	struct agreement_config config = {
		.spec = given->common.spec, .noise = (enum reading_noise)given->common.noise, .level = given->common.taken_level,
		.embed = sim_discover_embed(&given->common), .keep_outliers = given->common.keep_outliers, .elasticity = given->elasticity, .seed = given->common.seed, .runs = (uint32_t)given->runs,
		.watch = {&pace, sim_pace_step}};

	sim_pace_begin(&pace, COMMAND, 2 * given->runs);
	if (status == ESP_OK)
		status = agreement_run(&config, &given->same, err);
	config.fresh = true;
	if (status == ESP_OK)
		status = agreement_run(&config, &given->fresh, err);
	sim_pace_end(&pace);
	return status;
}

static enum esp_status print_table(const struct given *given)
{
	static const char *const headers[] = {"runs differ in", "alpha", "agreement", "with racks", "with rows", NULL};
	const struct agreement_result *results[2] = {&given->same, &given->fresh};
	struct table table;

	table_init(&table, headers);
	for (int i = 0; i < 2; i++) {
		for (int a = 0; a < 2; a++) {
			table_cell(&table, "%s", i == 0 ? "seeds" : "readings");
			table_cell(&table, "%d", a + 1);
			table_cell(&table, "%.3f", results[i]->between[a]);
			table_cell(&table, "%.3f", results[i]->truth[a]);
			table_cell(&table, "%.3f", results[i]->rows[a]);
		}
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static void put_result(struct json *json, const char *differ, const struct agreement_result *result)
{
	for (int a = 0; a < 2; a++) {
		json_object_begin(json);
		json_put_string(json, "differ", differ);
		json_put_u64(json, "alpha", (uint64_t)a + 1);
		json_put_double(json, "agreement", result->between[a]);
		json_put_double(json, "with_racks", result->truth[a]);
		json_put_double(json, "with_rows", result->rows[a]);
		json_object_end(json);
	}
}

static enum esp_status print_json(const struct given *given)
{
	struct json json;

	sim_discover_json_begin(&given->common, &json, 2);
	sim_discover_json_noise(&given->common, &json);
	json_put_u64(&json, "runs", given->runs);
	json_put_u64(&json, "groups", given->same.groups);
	json_key(&json, "results");
	json_array_begin(&json);
	put_result(&json, "seeds", &given->same);
	put_result(&json, "readings", &given->fresh);
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

static int run(int argc, char **argv)
{
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_DATACENTER), .runs = 100, .elasticity = 2};
	char text[SIM_DISCOVER_TEXT];
	struct error err = {0};
	const struct cli_option options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		{"runs", 'r', CLI_U64, &given.runs, "N", "(default 100)", .min = 2, .max = 10000},
		{"elasticity", 'e', CLI_DOUBLE, &given.elasticity, "E", "of the sizes of groups, 1 to 2 (default 2)"},
		{0},
	};
	const struct cli_usage usage = {COMMAND, "",
	                                "Groups the same machines many times, into as many groups as the root of their number, and prints how well the\n"
	                                "groupings agree: adjusted mutual information, mean over all pairs of runs. Runs differ in the seeds of\n"
	                                "embedding and grouping, or in traffic and readings too. Figure 5 of PLink.",
	                                options, 0, 0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);

	if (exit_status < 0 && !(given.elasticity >= 1 && given.elasticity <= 2))
		exit_status = cli_usage_error(COMMAND ": --elasticity is from 1 to 2");
	if (exit_status >= 0)
		return exit_status;
	enum esp_status status = run_both(&given, &err);
	if (status == ESP_OK && !given.common.json)
		printf("%s; %llu runs into %u groups, noise %s at level %.4f\n", sim_discover_text(&given.common, text), (unsigned long long)given.runs,
		       given.same.groups, sim_discover_noises[given.common.noise], given.common.taken_level);
	if (status == ESP_OK)
		status = given.common.json ? print_json(&given) : print_table(&given);
	return cli_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_agreement = {"agreement", "do different runs find the same groups? (figure 5)", run};
