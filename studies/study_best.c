/*
 * study_best.c - espalier-study discover best: what was found against every balanced grouping there is.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/rows.h"
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

	sim_tool_pace_begin(&pace, COMMAND, given->cases);
	for (uint64_t i = 0; i < given->cases && status == ESP_OK; i++) {
		config.seed = given->common.seed + i;
		status = best_run(&config, &given->results[i], err);
		if (status == ESP_OK)
			sim_tool_pace_step(&pace);
	}
	sim_tool_pace_end(&pace);
	return status;
}

/* The table shows how many times as long as the best it is. */
static void put_time(struct rows *rows, double seconds, double best)
{
	rows_shown(rows, "%.3f", seconds / best);
	rows_double(rows, seconds);
}

static void put_case(struct rows *rows, uint64_t seed, const struct best_result *it)
{
	rows_u64(rows, seed);
	rows_u64(rows, it->racks);
	rows_u64(rows, it->groupings);
	rows_double(rows, it->best);
	rows_u64(rows, it->best_groups);
	put_time(rows, it->chosen, it->best);
	rows_u64(rows, it->chosen_groups);
	rows_double(rows, it->beaten);
	put_time(rows, it->root, it->best);
	put_time(rows, it->truth, it->best);
	put_time(rows, it->flat, it->best);
	put_time(rows, it->median, it->best);
	put_time(rows, it->worst, it->best);
}

static void print_means(const struct given *given)
{
	double found = 0, root = 0, truth = 0, flat = 0, most = 0, share = 1.0 / (double)given->cases;

	for (uint64_t i = 0; i < given->cases; i++) {
		const struct best_result *it = &given->results[i];

		found += it->chosen / it->best * share;
		root += it->root / it->best * share;
		truth += it->truth / it->best * share;
		flat += it->flat / it->best * share;
		most = fmax(most, it->chosen / it->best);
	}
	printf("times as long as the best, on average: found %.3f (at most %.3f), root %.3f, truth %.3f, flat %.3f\n",
	       found, most, root, truth, flat);
}

static enum esp_status print(const struct given *given)
{
	static const struct column columns[] = {
		{"case", "seed"},           {"racks", "racks"},
		{"groupings", "groupings"}, {"best ms", "best_s", "%.2f", 1e3},
		{"groups", "best_groups"},  {"found", "found_s"},
		{"groups", "found_groups"}, {"beats %", "found_beats", "%.1f", 100},
		{"root", "root_s"},         {"truth", "truth_s"},
		{"flat", "flat_s"},         {"median", "median_s"},
		{"worst", "worst_s"},       {0},
	};
	const struct sim_discover *common = &given->common;
	char text[SIM_DISCOVER_TEXT];
	struct json json;
	struct rows rows;

	if (common->json) {
		sim_discover_json_begin(common, &json, 2);
		sim_discover_json_find(common, &json);
		json_key(&json, "cases");
	} else {
		printf("%s; grouped by %s, noise %s at level %.4f\n", sim_discover_text(common, text),
		       sim_discover_bys[common->by], sim_discover_noises[common->noise], common->taken_level);
	}
	rows_begin(&rows, columns, common->json ? &json : NULL);
	for (uint64_t i = 0; i < given->cases; i++)
		put_case(&rows, common->seed + i, &given->results[i]);
	enum esp_status status = rows_finish(&rows, stdout);
	if (!common->json)
		print_means(given);
	return status;
}

static int run(int argc, char **argv)
{
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_CORNER), .cases = DISCOVER_CASES};
	struct error err = {0};
	const struct option_spec options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		SIM_DISCOVER_FIND(&given.common, "1M"),
		{"cases", 'c', OPTION_U64, &given.cases, "N", "made-up regions (default 20)", .min = 1, .max = 10000},
		{0},
	};
	const struct options_usage usage = {COMMAND,
	                                    "",
	                                    "Runs the plan of every balanced grouping of a few machines, 10 at most, and "
	                                    "says how many times as long as the best\n"
	                                    "of them the one takes that was found from readings.\n\n"
	                                    "  espalier-study discover best\n"
	                                    "  espalier-study discover best --machines 10 --racks 3 --cases 3",
	                                    options,
	                                    0,
	                                    0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);

	if (exit_status < 0 && given.common.spec.machines > BEST_MACHINES_MOST)
		exit_status = complain_usage(COMMAND ": %u machines have too many groupings to try them all: %u at most",
		                             given.common.spec.machines, BEST_MACHINES_MOST);
	if (exit_status >= 0)
		return exit_status;
	given.results = calloc(given.cases, sizeof(*given.results));
	enum esp_status status =
		given.results ? measure(&given, &err) : error_set(&err, ESP_ENOMEM, "no memory for the results");
	if (status == ESP_OK)
		status = print(&given);
	free(given.results);
	return complain_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_best = {"best", "what was found against every balanced grouping", run};
