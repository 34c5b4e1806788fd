/*
 * study_calibrate.c - espalier-study discover calibrate: how much noise raw readings need to be as good as the paper's.
 */
#include <stdio.h>

#include "report/rows.h"
#include "studies/study_discover.h"

#define COMMAND "discover calibrate"

static enum esp_status calibrate_all(const struct sim_discover *common, double level[READING_NOISES],
                                     double raw[READING_NOISES], struct error *err)
{
	enum esp_status status = ESP_OK;

	for (unsigned i = 0; i < READING_NOISES && status == ESP_OK; i++)
		status = discover_calibrate(&common->spec, (enum reading_noise)i, common->raw, common->seed, DISCOVER_CASES,
		                            &level[i], &raw[i], err);
	return status;
}

static enum esp_status print(const struct sim_discover *common, const double *level, const double *raw)
{
	static const struct column columns[] = {
		{"noise", "noise"}, {"level", "level", "%.4f"}, {"raw PAIA %", "raw_paia", "%.2f", 100}, {0}};
	char text[SIM_DISCOVER_TEXT];
	struct json json;
	struct rows rows;

	if (common->json) {
		sim_discover_json_begin(common, &json, 2);
		json_put_double(&json, "wanted", common->raw);
		json_put_u64(&json, "cases", DISCOVER_CASES);
		json_key(&json, "noises");
	} else {
		printf("%s; mean of %u\n", sim_discover_text(common, text), DISCOVER_CASES);
	}
	rows_begin(&rows, columns, common->json ? &json : NULL);
	for (unsigned i = 0; i < READING_NOISES; i++) {
		rows_text(&rows, reading_noise_name((enum reading_noise)i));
		rows_double(&rows, level[i]);
		rows_double(&rows, raw[i]);
	}
	return rows_finish(&rows, stdout);
}

static int run(int argc, char **argv)
{
	struct sim_discover common = SIM_DISCOVER_INIT(SIM_SETTING_DATACENTER);
	double level[READING_NOISES], raw[READING_NOISES];
	struct error err = {0};
	const struct option_spec options[] = {
		SIM_DISCOVER_REGION(&common),
		{"raw", 0, OPTION_DOUBLE, &common.raw, "P",
	     "the PAIA that raw readings are to have (default 0.813, the paper's)"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Finds for each model of noise the level at which raw latency readings have a given PAIA: the mean over\n"
		"20 made-up regions, by bisection. The embedding has no part in it.",
		options,
		0,
		0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &common);

	if (exit_status >= 0)
		return exit_status;
	enum esp_status status = calibrate_all(&common, level, raw, &err);
	if (status == ESP_OK)
		status = print(&common, level, raw);
	return complain_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_calibrate = {
	"calibrate", "how much noise raw readings need to be as good as the paper's", run};
