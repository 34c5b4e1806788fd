/*
 * study_accuracy.c - espalier-study discover accuracy: how well readings tell what is near, raw and embedded.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart.h"
#include "report/rows.h"
#include "studies/discover_accuracy.h"
#include "studies/study_discover.h"
#include "tools/sim/sim_pace.h"

#define COMMAND "discover accuracy"

/* The levels of the chart, times that which was calibrated. */
static const double chart_levels[] = {0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8};
#define CHART_LEVELS (sizeof(chart_levels) / sizeof(chart_levels[0]))

struct row {
	const char *name; /* of the noise, or "bandwidth" */
	double level;     /* NAN: it has none */
	struct accuracy_result result;
};

struct given {
	struct sim_discover common;
	uint64_t cases;
	bool all;
	const char *svg;
	struct row rows[READING_NOISES + 1];
	uint32_t row_count;
	struct sim_pace pace;
};

static struct accuracy_config config_of(struct given *given, enum reading_noise noise, double level)
{
	return (struct accuracy_config){.spec = given->common.spec,
	                                .noise = noise,
	                                .level = level,
	                                .embed = sim_discover_embed(&given->common),
	                                .keep_outliers = given->common.keep_outliers,
	                                .seed = given->common.seed,
	                                .count = (uint32_t)given->cases,
	                                .watch = {&given->pace, sim_tool_pace_step}};
}

static enum esp_status run_latency(struct given *given, enum reading_noise noise, struct error *err)
{
	struct row *row = &given->rows[given->row_count++];
	enum esp_status status = sim_discover_level(&given->common, noise, &row->level, err);

	row->name = reading_noise_name(noise);
	if (status != ESP_OK)
		return status;
	const struct accuracy_config config = config_of(given, noise, row->level);
	return accuracy_run(&config, &row->result, err);
}

static enum esp_status run_bandwidth(struct given *given, struct error *err)
{
	struct row *row = &given->rows[given->row_count++];
	struct accuracy_config config = config_of(given, READING_CLOUD, 0);

	row->name = "bandwidth";
	row->level = NAN;
	config.probe = ACCURACY_BANDWIDTH;
	return accuracy_run(&config, &row->result, err);
}

static enum esp_status run_rows(struct given *given, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (unsigned noise = 0; noise < READING_NOISES && status == ESP_OK; noise++) {
		if (given->all || (int)noise == given->common.noise)
			status = run_latency(given, (enum reading_noise)noise, err);
	}
	return status == ESP_OK ? run_bandwidth(given, err) : status;
}

/* ---- showing ---- */

static void put_range(struct json *json, const struct accuracy_range *range)
{
	if (!json)
		return;
	json_object_begin(json);
	json_put_double(json, "mean", range->mean);
	json_put_double(json, "least", range->least);
	json_put_double(json, "most", range->most);
	json_object_end(json);
}

/* The gain over raw readings, in points and relative. */
static void put_gain(struct rows *rows, double mean, double raw)
{
	rows_double(rows, mean);
	rows_double(rows, mean - raw);
	rows_double(rows, mean / raw - 1);
}

static void put_row(struct rows *rows, const struct row *row)
{
	const struct accuracy_result *it = &row->result;

	rows_text(rows, row->name);
	rows_double(rows, row->level);
	put_range(rows_nested(rows), &it->raw);
	put_range(rows_nested(rows), &it->alpha1);
	put_range(rows_nested(rows), &it->alpha2);
	rows_double(rows, it->raw.mean);
	put_gain(rows, it->alpha1.mean, it->raw.mean);
	rows_u64(rows, it->alpha1_won);
	put_gain(rows, it->alpha2.mean, it->raw.mean);
	rows_u64(rows, it->alpha2_won);
}

static void put_heading(const struct given *given, struct json *json)
{
	const struct accuracy_result *first = &given->rows[0].result;

	sim_discover_json_begin(&given->common, json, 3);
	json_put_u64(json, "cases", given->cases);
	json_put_double(json, "triplets", first->triplets);
	json_key(json, "held");
	json_object_begin(json);
	for (unsigned level = REGION_DATACENTER; level <= REGION_RACK; level++)
		json_put_double(json, region_level_name((enum region_level)level), first->held[level]);
	json_object_end(json);
	json_key(json, "rows");
}

/* PAIA over the level of the noise, raw and embedded. */
static enum esp_status write_chart(struct given *given, struct error *err)
{
	double level, x[CHART_LEVELS], y[3][CHART_LEVELS];
	enum reading_noise noise = (enum reading_noise)given->common.noise;
	char text[SIM_DISCOVER_TEXT];
	enum esp_status status = sim_discover_level(&given->common, noise, &level, err);

	for (size_t i = 0; i < CHART_LEVELS && status == ESP_OK; i++) {
		struct accuracy_result result;
		const struct accuracy_config config = config_of(given, noise, x[i] = level * chart_levels[i]);

		status = accuracy_run(&config, &result, err);
		y[0][i] = 100 * result.raw.mean;
		y[1][i] = 100 * result.alpha1.mean;
		y[2][i] = 100 * result.alpha2.mean;
	}
	if (status != ESP_OK)
		return status;
	const struct chart_line lines[] = {{"raw", y[0]}, {"embedded, alpha 1", y[1]}, {"embedded, alpha 2", y[2]}};
	const struct chart chart = {.title = "Latency readings: which of two machines is nearer?",
	                            .note = sim_discover_text(&given->common, text),
	                            .x_label = "level of the noise",
	                            .y_label = "PAIA (%)",
	                            .x = x,
	                            .count = CHART_LEVELS,
	                            .lines = lines,
	                            .line_count = 3,
	                            .log_x = true};
	return chart_save(&chart, given->svg, err);
}

static enum esp_status print(const struct given *given)
{
	static const struct column columns[] = {
		{"readings", "readings"},
		{"level", "level", "%.4f"},
		{NULL, "raw_paia"},
		{NULL, "alpha1_paia"},
		{NULL, "alpha2_paia"},
		{"raw %", NULL, "%.1f", 100},
		{"alpha 1 %", NULL, "%.1f", 100},
		{"points", NULL, "%+.1f", 100},
		{"relative %", NULL, "%+.1f", 100},
		{"better in", "alpha1_better"},
		{"alpha 2 %", NULL, "%.1f", 100},
		{"points", NULL, "%+.1f", 100},
		{"relative %", NULL, "%+.1f", 100},
		{"better in", "alpha2_better"},
		{0},
	};
	const struct accuracy_result *first = &given->rows[0].result;
	char text[SIM_DISCOVER_TEXT];
	struct json json;
	struct rows rows;

	if (given->common.json)
		put_heading(given, &json);
	else
		printf("%s; mean of %" PRIu64
		       ": %.0f triplets, machines in %.1f racks, %.1f rows, %.1f clusters, %.1f datacenters\n",
		       sim_discover_text(&given->common, text), given->cases, first->triplets, first->held[REGION_RACK],
		       first->held[REGION_ROW], first->held[REGION_CLUSTER], first->held[REGION_DATACENTER]);
	rows_begin(&rows, columns, given->common.json ? &json : NULL);
	for (uint32_t i = 0; i < given->row_count; i++)
		put_row(&rows, &given->rows[i]);
	return rows_finish(&rows, stdout);
}

static int run(int argc, char **argv)
{
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_DATACENTER), .cases = DISCOVER_CASES};
	struct error err = {0};
	const struct option_spec options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		{"all-noises", 'a', OPTION_FLAG, &given.all, NULL, "every model of noise, each calibrated by itself"},
		{"cases", 'c', OPTION_U64, &given.cases, "N", "made-up regions (default 20)", .min = 1, .max = 10000},
		{"svg", 0, OPTION_STRING, &given.svg, "FILE", "draw PAIA over the level of the noise"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"How well latency and bandwidth readings tell which of two machines is nearer to a third (PAIA), raw and\n"
		"after embedding with both exponents. Section 5.5 of PLink.\n\n"
		"  espalier-study discover accuracy --all-noises\n"
		"  espalier-study discover accuracy --setting region",
		options,
		0,
		0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);

	if (exit_status >= 0)
		return exit_status;
	uint64_t rows = (given.all ? READING_NOISES : 1) + 1 + (given.svg ? CHART_LEVELS : 0);
	sim_tool_pace_begin(&given.pace, COMMAND, rows * given.cases);
	enum esp_status status = run_rows(&given, &err);
	if (status == ESP_OK && given.svg)
		status = write_chart(&given, &err);
	sim_tool_pace_end(&given.pace);
	if (status == ESP_OK)
		status = print(&given);
	return complain_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_accuracy = {
	"accuracy", "how well readings tell what is near, raw and embedded (section 5.5)", run};
