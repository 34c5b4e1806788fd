/*
 * sim_models.c - espalier sim models: the models that are shipped, or what is known of one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/sim.h"
#include "report/options.h"
#include "report/rows.h"
#include "sim/workload/accelerator.h"
#include "tools/sim/sim_model.h"

#define COMMAND "sim models"

static uint64_t largest(const struct model *model)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < model->parameter_count; i++)
		most = model->parameters[i].bytes > most ? model->parameters[i].bytes : most;
	return most;
}

static void put(struct rows *rows, const struct model *model)
{
	rows_text(rows, model->name);
	rows_text(rows, model->about);
	rows_u64(rows, model->parameter_count);
	rows_u64(rows, workload_model_bytes(model));
	rows_u64(rows, workload_model_aggregated_bytes(model));
	rows_u64(rows, largest(model));
	rows_u64(rows, workload_model_macs(model));
	rows_u64(rows, model->batch);
	rows_double(rows, model->forward_s);
	rows_double(rows, model->backward_s);
	rows_shown(rows, model->times_assumed ? "assumed" : "measured");
	rows_bool(rows, model->times_assumed);
	rows_text(rows, model->time_source);
}

static void accelerators(FILE *out)
{
	fputs("\naccelerators (for --accelerator; the share of the peak that training reaches is assumed):\n", out);
	for (size_t i = 0; workload_accelerator_at(i); i++)
		fprintf(out, "  %-15s %-46s %6.4g Tflop/s x %g\n", workload_accelerator_at(i)->name,
		        workload_accelerator_at(i)->title, workload_accelerator_at(i)->peak / 1e12,
		        workload_accelerator_at(i)->reached);
}

static enum esp_status print(const struct model *models, size_t count, bool as_json)
{
	static const struct column columns[] = {
		{"model", "name"},
		{NULL, "about"},
		{"parameters", "parameters"},
		{"MB", "bytes", "%.1f", 1e-6},
		{"aggregated MB", "aggregated_bytes", "%.1f", 1e-6},
		{"largest MB", "largest_bytes", "%.1f", 1e-6},
		{"GMAC", "macs", "%.2f", 1e-9},
		{"batch", "batch"},
		{"forward s", "forward_s", "%.4g"},
		{"backward s", "backward_s", "%.4g"},
		{"times", "times_assumed"},
		{NULL, "time_source"},
		{0},
	};
	struct json json;
	struct rows rows;

	if (as_json) {
		json_init(&json, stdout);
		json_object_begin(&json);
		json_key(&json, "models");
	}
	rows_begin(&rows, columns, as_json ? &json : NULL);
	for (size_t i = 0; i < count; i++)
		put(&rows, &models[i]);
	return rows_finish(&rows, stdout);
}

/* All are read before anything is printed: half a list would pass for a whole one. */
static int list(char *const *names, size_t count, const struct model_options *options, bool as_json, bool all)
{
	struct model *models = calloc(count + 1, sizeof(*models));
	struct error err = {0};
	enum esp_status status = ESP_OK;
	if (!models)
		return complain(COMMAND ": no memory for %zu models", count);
	for (size_t i = 0; i < count && status == ESP_OK; i++)
		status = sim_tool_model_open(&models[i], names[i], options, &err);
	if (status == ESP_OK)
		status = print(models, count, as_json);
	if (status == ESP_OK && all && !as_json)
		accelerators(stdout);
	for (size_t i = 0; i < count; i++)
		workload_model_fini(&models[i]);
	free(models);
	return complain_end(COMMAND, status, &err);
}

static int run(int argc, char **argv)
{
	bool json = false;
	const char *accelerator = NULL;
	uint64_t batch = 0, value_bytes = 0;
	struct error err = {0};
	const struct option_spec options[] = {
		{"accelerator", 'a', OPTION_STRING, &accelerator, "NAME|RATE",
	     "compute the times with it instead (v100-fp32, or 45T a second)"},
		{"batch", 'b', OPTION_U64, &batch, "N", "samples of a worker and an iteration", .min = 1, .max = 1u << 30},
		{"value-bytes", 0, OPTION_U64, &value_bytes, "N", "bytes of a value on the wire", .min = 1, .max = 64},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"[MODEL|FILE]...",
		"Lists the models that are shipped, or those that are named: their sizes, and how long an\n"
		"iteration computes. A file has a slash in its name, or .json.",
		options,
		0,
		-1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	struct model_options wanted = {.batch = (uint32_t)batch, .value_bytes = (uint32_t)value_bytes};
	if (accelerator && workload_accelerator_rate(accelerator, &wanted.flops, &err) != ESP_OK)
		return complain_usage(COMMAND ": --accelerator: %s", err.text);
	if (argc > 1)
		return list(argv + 1, (size_t)argc - 1, &wanted, json, false);
	char **names = sim_tool_model_names();
	if (!names)
		return complain(COMMAND ": no model was found");
	size_t count = 0;
	while (names[count])
		count++;
	int status = list(names, count, &wanted, json, true);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return status;
}

const struct cli_command cli_sim_models = {"models", "lists the models that are shipped", run};
