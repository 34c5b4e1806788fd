/*
 * study_calibrate.c - espalier-study discover calibrate: how much noise raw readings need to be as good as the paper's.
 */
#include <math.h>
#include <stdio.h>

#include "report/table.h"
#include "studies/study_discover.h"

#define COMMAND "discover calibrate"

static enum esp_status calibrate_all(const struct sim_discover *common, double level[READING_NOISES], double raw[READING_NOISES], struct error *err)
{
	enum esp_status status = ESP_OK;

	for (unsigned i = 0; i < READING_NOISES && status == ESP_OK; i++)
		status = discover_calibrate(&common->spec, (enum reading_noise)i, common->raw, common->seed, DISCOVER_CASES, &level[i], &raw[i], err);
	return status;
}

static enum esp_status print_table(const double *level, const double *raw)
{
	static const char *const headers[] = {"noise", "level", "raw PAIA %", NULL};
	struct table table;

	table_init(&table, headers);
	for (unsigned i = 0; i < READING_NOISES; i++) {
		table_cell(&table, "%s", reading_noise_name((enum reading_noise)i));
		table_cell(&table, "%.4f", level[i]);
		table_cell(&table, "%.2f", 100 * raw[i]);
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static enum esp_status print_json(const struct sim_discover *common, const double *level, const double *raw)
{
	struct json json;

	sim_discover_json_begin(common, &json, 2);
	json_put_double(&json, "wanted", common->raw);
	json_put_u64(&json, "cases", DISCOVER_CASES);
	json_key(&json, "noises");
	json_array_begin(&json);
	for (unsigned i = 0; i < READING_NOISES; i++) {
		json_object_begin(&json);
		json_put_string(&json, "noise", reading_noise_name((enum reading_noise)i));
		json_put_double(&json, "level", level[i]);
		json_put_double(&json, "raw_paia", raw[i]);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

static int run(int argc, char **argv)
{
	struct sim_discover common = SIM_DISCOVER_INIT(SIM_SETTING_DATACENTER);
	double level[READING_NOISES], raw[READING_NOISES];
	char text[SIM_DISCOVER_TEXT];
	struct error err = {0};
	const struct cli_option options[] = {
		SIM_DISCOVER_REGION(&common),
		{"raw", 0, CLI_DOUBLE, &common.raw, "P", "the PAIA that raw readings are to have (default 0.813, the paper's)"},
		{0},
	};
	const struct cli_usage usage = {COMMAND, "",
	                                "Finds for each model of noise the level at which raw latency readings have a given PAIA: the mean over\n"
	                                "20 made-up regions, by bisection. The embedding has no part in it.",
	                                options, 0, 0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &common);

	if (exit_status >= 0)
		return exit_status;
	enum esp_status status = calibrate_all(&common, level, raw, &err);
	if (status == ESP_OK && !common.json)
		printf("%s; mean of %u\n", sim_discover_text(&common, text), DISCOVER_CASES);
	if (status == ESP_OK)
		status = common.json ? print_json(&common, level, raw) : print_table(level, raw);
	return cli_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_calibrate = {"calibrate", "how much noise raw readings need to be as good as the paper's", run};
