/*
 * study_speed.c - espalier-study discover speed: two-level plans by several groupings against the flat plan.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/units.h"
#include "report/chart.h"
#include "report/rows.h"
#include "studies/discover_speed.h"
#include "studies/study_discover.h"
#include "tools/sim/sim_pace.h"

#define COMMAND "discover speed"

struct given {
	struct sim_discover common;
	uint64_t runs, jobs;
	const char *grain;
	uint64_t grain_ns;
	bool whole_hosts;
	const char *svg;
	struct speed_result result;
};

static enum esp_status measure(struct given *given, struct error *err)
{
	enum esp_status status = sim_discover_calibrate(&given->common, err);
	struct sim_pace pace;
	const struct speed_config config = {
		.spec = given->common.spec,
		.find = sim_discover_find(&given->common),
		.load = {given->common.bytes, given->common.chunk_bytes, 1e-9 * (double)given->grain_ns},
		.whole_hosts = given->whole_hosts,
		.seed = given->common.seed,
		.runs = (uint32_t)given->runs,
		.at_once = (uint32_t)given->jobs,
		.watch = {&pace, sim_tool_pace_step},
	};

	sim_tool_pace_begin(&pace, COMMAND, given->runs * SPEED_PARTS);
	if (status == ESP_OK)
		status = speed_run(&config, &given->result, err);
	sim_tool_pace_end(&pace);
	return status;
}

static void put_seconds(struct json *json, const struct speed_result *result, enum speed_way way)
{
	json_array_begin(json);
	for (uint32_t i = 0; i < result->runs; i++)
		json_double(json, result->seconds[way * result->runs + i]);
	json_array_end(json);
}

static void put_way(struct rows *rows, const struct speed_result *result, enum speed_way way)
{
	const struct speed_summary *it = &result->summary[way], *flat = &result->summary[SPEED_FLAT];

	rows_text(rows, speed_way_name(way));
	if (way == SPEED_FLAT)
		rows_shown(rows, "-");
	rows_double(rows, result->groups[way]);
	rows_double(rows, result->ami[way]);
	rows_double(rows, it->mean);
	rows_double(rows, it->p50);
	rows_double(rows, it->p95);
	rows_double(rows, flat->mean / it->mean);
	rows_double(rows, flat->p50 / it->p50);
	rows_double(rows, flat->p95 / it->p95);
	struct json *json = rows_nested(rows);
	if (json)
		put_seconds(json, result, way);
}

static void put_heading(const struct given *given, struct json *json)
{
	sim_discover_json_begin(&given->common, json, 3);
	sim_discover_json_find(&given->common, json);
	json_put_double(json, "grain_s", 1e-9 * (double)given->grain_ns);
	json_put_bool(json, "whole_hosts", given->whole_hosts);
	json_put_u64(json, "runs", given->runs);
	json_put_u64(json, "racks_held", given->result.held[REGION_RACK]);
	json_key(json, "plans");
}

static enum esp_status print(const struct given *given)
{
	static const struct column columns[] = {
		{"plan", "plan"},
		{"groups", "groups", "%.1f"},
		{"AMI", "ami", "%.3f"},
		{"mean ms", "mean_s", "%.1f", 1e3},
		{"P50 ms", "p50_s", "%.1f", 1e3},
		{"P95 ms", "p95_s", "%.1f", 1e3},
		{"speedup: mean", NULL, "%.2f"},
		{"P50", NULL, "%.2f"},
		{"P95", NULL, "%.2f"},
		{NULL, "seconds"},
		{0},
	};
	const struct sim_discover *common = &given->common;
	char text[SIM_DISCOVER_TEXT];
	struct json json;
	struct rows rows;

	if (common->json)
		put_heading(given, &json);
	else
		printf("%s, in %u of the racks; %" PRIu64 " runs, grouped by %s, noise %s at level %.4f\n",
		       sim_discover_text(common, text), given->result.held[REGION_RACK], given->runs,
		       sim_discover_bys[common->by], sim_discover_noises[common->noise], common->taken_level);
	rows_begin(&rows, columns, common->json ? &json : NULL);
	for (unsigned way = 0; way < SPEED_WAYS; way++)
		put_way(&rows, &given->result, (enum speed_way)way);
	return rows_finish(&rows, stdout);
}

/* ---- the distribution ---- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The times of all runs of all plans, each once; returns how many. */
static size_t all_times(const struct speed_result *result, double *out)
{
	size_t count = (size_t)result->runs * SPEED_WAYS, kept = 1;

	for (size_t i = 0; i < count; i++)
		out[i] = 1e3 * result->seconds[i];
	qsort(out, count, sizeof(*out), ascending);
	for (size_t i = 1; i < count; i++) {
		if (out[i] > out[kept - 1])
			out[kept++] = out[i];
	}
	return kept;
}

/* Of each plan, which share of its runs took at most x. */
static void shares_below(const struct speed_result *result, unsigned way, const double *x, size_t count, double *out)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t below = 0;

		for (uint32_t run = 0; run < result->runs; run++)
			below += 1e3 * result->seconds[way * result->runs + run] <= x[i];
		out[i] = 100.0 * below / result->runs;
	}
}

static enum esp_status draw(const struct given *given, const double *x, size_t count, double *y, struct error *err)
{
	struct chart_line lines[SPEED_WAYS];
	char text[SIM_DISCOVER_TEXT];

	for (unsigned way = 0; way < SPEED_WAYS; way++) {
		shares_below(&given->result, way, x, count, &y[way * count]);
		lines[way] = (struct chart_line){speed_way_name((enum speed_way)way), &y[way * count]};
	}
	const struct chart chart = {.title = "An allreduce by several groupings",
	                            .note = sim_discover_text(&given->common, text),
	                            .x_label = "at most so many ms",
	                            .y_label = "runs (%)",
	                            .x = x,
	                            .count = count,
	                            .lines = lines,
	                            .line_count = SPEED_WAYS};
	return chart_save(&chart, given->svg, err);
}

static enum esp_status write_chart(const struct given *given, struct error *err)
{
	size_t room = (size_t)given->result.runs * SPEED_WAYS;
	double *x = calloc(room, sizeof(*x)), *y = calloc(room * SPEED_WAYS, sizeof(*y));
	enum esp_status status = x && y ? draw(given, x, all_times(&given->result, x), y, err)
	                                : error_set(err, ESP_ENOMEM, "no memory for a chart");

	free(x);
	free(y);
	return status;
}

/* ---- the command ---- */

#define CHUNK_MOST (UINT64_C(512) << 10)
#define MACHINES_MANY 256u        /* so many have more flows at a time than can be computed anew whenever one ends */
#define GRAIN_MANY_NS NS_PER_MS

/* Defaults: every machine is the master of a chunk, and the study ends within minutes. */
static void choose(struct given *given)
{
	uint64_t machines = given->common.spec.machines, share = (given->common.bytes + machines - 1) / machines;

	if (given->common.chunk_bytes == 0)
		given->common.chunk_bytes = share < CHUNK_MOST ? (share + 3) / 4 * 4 : CHUNK_MOST;
	if (!given->grain && machines >= MACHINES_MANY)
		given->grain_ns = GRAIN_MANY_NS;
}

static int run(int argc, char **argv)
{
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_JOB), .runs = 50, .jobs = cores_allowed()};
	struct error err = {0};
	const struct option_spec options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		SIM_DISCOVER_FIND(&given.common, "512K, or a machine's share"),
		{"runs", 'r', OPTION_U64, &given.runs, "N", "(default 50)", .min = 1, .max = 10000},
		{"jobs", 'j', OPTION_U64, &given.jobs, "N", "runs at a time (default: as many as there are cores)", .min = 1,
	     .max = 256},
		{"grain", 0, OPTION_STRING, &given.grain, "T",
	     "flows keep their rates so long while few of them come or go (default 0: never; from 256 machines on 1ms)"},
		{"whole-hosts", 0, OPTION_FLAG, &given.whole_hosts, NULL,
	     "no host has a neighbour that takes part of its link"},
		{"svg", 0, OPTION_STRING, &given.svg, "FILE", "draw the distributions"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Runs an allreduce in virtual time on the same machines again and again, each time with other traffic and new\n"
		"readings: flat, and two-level by probed groups (probed: as many as the cost model likes; probed+tuned: after "
	    "some\n"
		"steps of retuning; probed-root: the root of the number of machines, as the paper has it), by balanced random "
	    "groups, and by the true racks. Figures 8\n"
		"and 9 of PLink.\n\n"
		"  espalier-study discover speed --svg speed.svg",
		options,
		0,
		0};

	given.common.chunk_bytes = 0;
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);
	if (exit_status >= 0)
		return exit_status;
	if (given.grain && !units_parse_delay(given.grain, &given.grain_ns))
		return complain_usage("%s: --grain is a time such as 100us, up to an hour; a number alone counts microseconds",
		                      COMMAND);
	choose(&given);
	enum esp_status status = measure(&given, &err);
	if (status == ESP_OK && given.svg)
		status = write_chart(&given, &err);
	if (status == ESP_OK)
		status = print(&given);
	speed_fini(&given.result);
	return complain_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_speed = {
	"speed", "two-level by found groups against flat, over many runs (figures 8 and 9)", run};
