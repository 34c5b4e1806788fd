/*
 * study_best.c - espalier-study discover best: what was found against every balanced grouping there is.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/table.h"
#include "studies/discover_best.h"
#include "studies/study_discover.h"
#include "tools/sim/sim_pace.h"

#define COMMAND "discover best"

struct given {
	struct sim_discover common;
	uint64_t cases;
	struct best_result *results;
};

static enum esp_status measure(struct given *given, struct error *err)
{
	enum esp_status status = sim_discover_calibrate(&given->common, err);
	struct best_config config = {
		.spec = given->common.spec,
		.find = sim_discover_find(&given->common),
		.load = {given->common.bytes, given->common.chunk_bytes},
	};
	struct sim_pace pace;

	sim_pace_begin(&pace, COMMAND, given->cases);
	for (uint64_t i = 0; i < given->cases && status == ESP_OK; i++) {
		config.seed = given->common.seed + i;
		status = best_run(&config, &given->results[i], err);
		if (status == ESP_OK)
			sim_pace_step(&pace);
	}
	sim_pace_end(&pace);
	return status;
}

static enum esp_status print_table(const struct given *given)
{
	static const char *const headers[] = {"case", "racks", "groupings", "best ms", "groups", "found", "groups", "beats %", "root", "truth", "flat", "median", "worst", NULL};
	double found = 0, root = 0, truth = 0, flat = 0, most = 0;
	struct table table;

	assert(given->results);
	table_init(&table, headers);
	for (uint64_t i = 0; i < given->cases; i++) {
		const struct best_result *it = &given->results[i];

		table_cell(&table, "%" PRIu64, given->common.seed + i);
		table_cell(&table, "%u", it->racks);
		table_cell(&table, "%u", it->groupings);
		table_cell(&table, "%.2f", 1e3 * it->best);
		table_cell(&table, "%u", it->best_groups);
		table_cell(&table, "%.3f", it->chosen / it->best);
		table_cell(&table, "%u", it->chosen_groups);
		table_cell(&table, "%.1f", 100 * it->beaten);
		table_cell(&table, "%.3f", it->root / it->best);
		table_cell(&table, "%.3f", it->truth / it->best);
		table_cell(&table, "%.3f", it->flat / it->best);
		table_cell(&table, "%.3f", it->median / it->best);
		table_cell(&table, "%.3f", it->worst / it->best);
		found += it->chosen / it->best / (double)given->cases;
		root += it->root / it->best / (double)given->cases;
		truth += it->truth / it->best / (double)given->cases;
		flat += it->flat / it->best / (double)given->cases;
		most = it->chosen / it->best > most ? it->chosen / it->best : most;
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	printf("times as long as the best, on average: found %.3f (at most %.3f), root %.3f, truth %.3f, flat %.3f\n", found, most, root, truth, flat);
	return status;
}

static enum esp_status print_json(const struct given *given)
{
	struct json json;

	sim_discover_json_begin(&given->common, &json, 2);
	sim_discover_json_find(&given->common, &json);
	json_key(&json, "cases");
	json_array_begin(&json);
	assert(given->results);
	for (uint64_t i = 0; i < given->cases; i++) {
		const struct best_result *it = &given->results[i];

		json_object_begin(&json);
		json_put_u64(&json, "seed", given->common.seed + i);
		json_put_u64(&json, "racks", it->racks);
		json_put_u64(&json, "groupings", it->groupings);
		json_put_double(&json, "best_s", it->best);
		json_put_u64(&json, "best_groups", it->best_groups);
		json_put_double(&json, "found_s", it->chosen);
		json_put_u64(&json, "found_groups", it->chosen_groups);
		json_put_double(&json, "found_beats", it->beaten);
		json_put_double(&json, "root_s", it->root);
		json_put_double(&json, "truth_s", it->truth);
		json_put_double(&json, "flat_s", it->flat);
		json_put_double(&json, "median_s", it->median);
		json_put_double(&json, "worst_s", it->worst);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

static int run(int argc, char **argv)
{
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_CORNER), .cases = DISCOVER_CASES};
	char text[SIM_DISCOVER_TEXT];
	struct error err = {0};
	const struct cli_option options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		SIM_DISCOVER_FIND(&given.common, "1M"),
		{"cases", 'c', CLI_U64, &given.cases, "N", "made-up regions (default 20)", .min = 1, .max = 10000},
		{0},
	};
	const struct cli_usage usage = {COMMAND, "",
	                                "Runs the plan of every balanced grouping of a few machines, 10 at most, and says how many times as long as the best\n"
	                                "of them the one takes that was found from readings.\n\n"
	                                "  espalier-study discover best\n"
	                                "  espalier-study discover best --machines 10 --racks 3 --cases 3",
	                                options, 0, 0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);

	if (exit_status < 0 && given.common.spec.machines > BEST_MACHINES_MOST)
		exit_status = cli_usage_error(COMMAND ": %u machines have too many groupings to try them all: %u at most", given.common.spec.machines, BEST_MACHINES_MOST);
	if (exit_status >= 0)
		return exit_status;
	given.results = calloc(given.cases, sizeof(*given.results));
	enum esp_status status = given.results ? measure(&given, &err) : error_set(&err, ESP_ENOMEM, "no memory for the results");
	if (status == ESP_OK && !given.common.json)
		printf("%s; grouped by %s, noise %s at level %.4f\n", sim_discover_text(&given.common, text), sim_discover_bys[given.common.by],
		       sim_discover_noises[given.common.noise], given.common.taken_level);
	if (status == ESP_OK)
		status = given.common.json ? print_json(&given) : print_table(&given);
	free(given.results);
	return cli_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_best = {"best", "what was found against every balanced grouping", run};
