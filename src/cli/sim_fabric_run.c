/*
 * sim_fabric_run.c - espalier sim fabric run: ways to train on an uneven cluster side by side.
 */
#include <stdio.h>

#include "cli/sim_fabric.h"
#include "tools/sim/sim_fabric.h"

#define COMMAND "sim fabric run"

static enum esp_status study(const struct sim_fabric *fabric, uint32_t ways, struct fabric_row *rows, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t way = 0; way < ways && status == ESP_OK; way++)
		status = fabric_study_row(&fabric->cell, (enum fabric_way)way, &rows[way], err);
	return status;
}

static enum esp_status print(const struct sim_fabric *fabric, const struct fabric_row *rows, uint32_t ways)
{
	struct json json;

	if (!fabric->json) {
		puts(fabric->about);
		return sim_tool_fabric_print(fabric, rows, ways, NULL);
	}
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "case", fabric->about);
	json_key(&json, "ways");
	return sim_tool_fabric_print(fabric, rows, ways, &json);
}

static int run(int argc, char **argv)
{
	struct sim_fabric fabric;
	struct option_spec options[SIM_FABRIC_OPTIONS + 1];
	struct fabric_row rows[FABRIC_WAYS];
	struct error err = {0};
	bool has_ablation = false;

	sim_tool_fabric_init(&fabric);
	options[0] = (struct option_spec){"ablation", 0, OPTION_FLAG, &has_ablation, NULL,
	                                  "also chains with one thing left out"};
	sim_tool_fabric_options(&fabric, options + 1);
	const struct options_usage usage = {
		COMMAND, "",
		"Trains in virtual time by a ring allreduce, plain asynchronous updates, and the scheduler's ways: updates\n"
		"per second, and updates that SGD needs on a small task with each way's best learning rate.\n\n"
		"  espalier sim fabric run --stragglers C2 --weather N1\n"
		"  espalier sim fabric run --ablation --task network --seeds 5",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	uint32_t ways = has_ablation ? FABRIC_WAYS : FABRIC_WAYS_USUAL;
	enum esp_status status = sim_tool_fabric_cell(&fabric, &err);
	if (status == ESP_EINVAL)
		return complain_usage(COMMAND ": %s", err.text);
	if (status == ESP_OK)
		status = study(&fabric, ways, rows, &err);
	if (status == ESP_OK)
		status = print(&fabric, rows, ways);
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": %s", err.text[0] ? err.text : "cannot write the result");
}

const struct cli_command cli_sim_fabric_run = {"run", "ways to train on an uneven cluster side by side", run};
