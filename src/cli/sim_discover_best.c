/*
 * sim_discover_best.c - espalier sim discover best: what was found against every balanced grouping there is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/table.h"
#include "cli/sim_discover.h"
#include "sim/discover_best.h"

#define COMMAND "sim discover best"

static const char *const by_names[] = {"latency", "bandwidth", NULL};

struct given {
	struct sim_discover common;
	uint64_t cases, bytes, chunk_bytes;
	int by;
	double level;
	struct best_result *results;
};

static enum esp_status measure(struct given *given, struct error *err)
{
	double raw;
	enum esp_status status = sim_discover_level(&given->common, (enum reading_noise)given->common.noise, &given->level, &raw, err);
	struct best_config config = {
		.spec = given->common.spec,
		.find = {.by = (enum find_by)given->by, .noise = (enum reading_noise)given->common.noise, .level = given->level,
		         .candidates = {.embed = sim_discover_embed(&given->common), .keep_outliers = given->common.keep_outliers}, .bytes = given->bytes},
		.chunk_bytes = given->chunk_bytes,
	};

	for (uint64_t i = 0; i < given->cases && status == ESP_OK; i++) {
		config.seed = given->common.seed + i;
		status = best_run(&config, &given->results[i], err);
	}
	return status;
}

static enum esp_status print_table(const struct given *given)
{
	static const char *const headers[] = {"case", "racks", "groupings", "best ms", "groups", "found", "groups", "beats %", "root", "truth", "flat", "median", "worst", NULL};
	double found = 0, root = 0, truth = 0, flat = 0, most = 0;
	struct table table;

	table_init(&table, headers);
	for (uint64_t i = 0; i < given->cases; i++) {
		const struct best_result *it = &given->results[i];

		table_cell(&table, "%llu", (unsigned long long)(given->common.seed + i));
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

	json_init(&json, stdout);
	json.flat_depth = 2;
	json_object_begin(&json);
	sim_discover_json(&given->common, &json);
	json_put_string(&json, "by", by_names[given->by]);
	json_put_string(&json, "noise", sim_discover_noises[given->common.noise]);
	json_put_double(&json, "level", given->level);
	json_put_u64(&json, "bytes", given->bytes);
	json_put_u64(&json, "chunk_bytes", given->chunk_bytes);
	json_key(&json, "cases");
	json_array_begin(&json);
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
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_CORNER), .cases = DISCOVER_CASES, .bytes = 100000000, .chunk_bytes = 1 << 20};
	char text[SIM_DISCOVER_TEXT];
	struct error err = {0};
	const struct cli_option options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		{"by", 0, CLI_CHOICE, &given.by, "PROBE", "what machines are grouped by: latency (default) or bandwidth", .choices = by_names},
		{"cases", 'c', CLI_U64, &given.cases, "N", "made-up regions (default 20)", .min = 1, .max = 10000},
		{"bytes", 'b', CLI_BYTES, &given.bytes, "B", "of the buffer (default 100000000)", .min = 4, .max = UINT64_C(1) << 40},
		{"chunk", 0, CLI_BYTES, &given.chunk_bytes, "B", "the most of it that travels in one piece (default 1M)", .min = 4},
		{0},
	};
	const struct cli_usage usage = {COMMAND, "",
	                                "Runs the plan of every balanced grouping of a few machines, 10 at most, and says how many times as long as the best\n"
	                                "of them the one takes that was found from readings.\n\n"
	                                "  espalier sim discover best\n"
	                                "  espalier sim discover best --machines 10 --racks 3 --cases 3",
	                                options, 0, 0};
	int exit_status = cli_parse(&usage, &argc, argv);

	if (exit_status < 0)
		exit_status = sim_discover_take(&given.common, COMMAND);
	if (exit_status < 0 && given.common.spec.machines > BEST_MACHINES_MOST)
		exit_status = cli_usage_error(COMMAND ": %u machines have too many groupings to try them all: %u at most", given.common.spec.machines, BEST_MACHINES_MOST);
	if (exit_status >= 0)
		return exit_status;
	given.results = calloc(given.cases, sizeof(*given.results));
	enum esp_status status = given.results ? measure(&given, &err) : error_set(&err, ESP_ENOMEM, "no memory for the results");
	if (status == ESP_OK && !given.common.json)
		printf("%s; grouped by %s, noise %s at level %.4f\n", sim_discover_text(&given.common, text), by_names[given.by],
		       sim_discover_noises[given.common.noise], given.level);
	if (status == ESP_OK) {
		status = given.common.json ? print_json(&given) : print_table(&given);
		if (status != ESP_OK)
			(void)error_set(&err, status, "cannot write to the standard output");
	}
	free(given.results);
	return status == ESP_OK ? CLI_EXIT_OK : cli_fail(COMMAND ": %s", err.text);
}

const struct cli_command cli_discover_best = {"best", "what was found against every balanced grouping", run};
