/*
 * sim_traces.c - espalier sim traces: makes traces of a model, changes them, and says what is in them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/word.h"
#include "cli/sim.h"
#include "report/json.h"
#include "report/options.h"
#include "sim/workload/accelerator.h"
#include "sim/workload/replay.h"
#include "sim/workload/traces_edit.h"
#include "tools/sim/sim_model.h"

#define WORKERS_MAX 65536u

static int finish(const char *command, enum esp_status status, const struct error *err)
{
	return status == ESP_OK ? EXIT_OK : complain("%s: %s", command, err->text);
}

/* ---- make ---- */

static int run_make(int argc, char **argv)
{
	uint64_t workers = 8, iterations = 1, servers = 1, seed = 1, batch = 0;
	double jitter = 0;
	int set = MODEL_PUBLIC;
	const char *accelerator = NULL;
	const struct option_spec options[] = {
		{"workers", 'w', OPTION_U64, &workers, "N", "workers, one file each (default 8)", .min = 1, .max = WORKERS_MAX},
		{"iterations", 'i', OPTION_U64, &iterations, "N", "iterations of each (default 1)", .min = 1,
	     .max = WORKERS_MAX},
		{"servers", 's', OPTION_U64, &servers, "N", "parameter servers, round-robin over all variables (default 1)",
	     .min = 1, .max = WORKERS_MAX},
		{"jitter", 'j', OPTION_DOUBLE, &jitter, "SHARE",
	     "backward passes take up to this share longer, at random (default 0)"},
		{"seed", 0, OPTION_U64, &seed, "N", "of the jitter (default 1)"},
		{"set", 0, OPTION_CHOICE, &set, "SET", "which of the model's values: public, factors, calibrated",
	     .choices = model_set_names},
		{"accelerator", 'a', OPTION_STRING, &accelerator, "NAME|RATE", "compute the times with it instead"},
		{"batch", 'b', OPTION_U64, &batch, "N", "samples of a worker and an iteration", .min = 1, .max = 1u << 30},
		{0},
	};
	const struct options_usage usage = {"sim traces make",
	                                    "MODEL FOLDER",
	                                    "Writes the traces that training a model would have left, into a new folder.",
	                                    options,
	                                    2,
	                                    2};
	struct model model;
	struct traces traces = {0};
	struct error err = {0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (!(jitter >= 0 && jitter <= 1000))
		return complain_usage("%s: --jitter is no share from 0 to 1000", usage.command);
	struct model_options wanted = {.set = (enum model_set)set, .batch = (uint32_t)batch};
	if (accelerator && workload_accelerator_rate(accelerator, &wanted.flops, &err) != ESP_OK)
		return complain_usage("%s: --accelerator: %s", usage.command, err.text);
	enum esp_status status = sim_tool_model_open(&model, argv[1], &wanted, &err);
	if (status == ESP_OK)
		status = workload_traces_make(
			&traces, &model,
			&(struct traces_make){(uint32_t)workers, (uint32_t)iterations, (uint32_t)servers, jitter, seed}, &err);
	if (status == ESP_OK)
		status = workload_traces_save(&traces, argv[2], &err);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
	return finish(usage.command, status, &err);
}

/* ---- add ---- */

/* The two modules of the paper's synthetic models: much to compute, and much to send. */
static const struct {
	const char *name, *prefix;
} known_modules[] = {{"compute", "mixed_35x35x288b"}, {"network", "mixed_17x17x768e"}};

static int run_add(int argc, char **argv)
{
	uint64_t count = 1;
	const char *module = "compute", *from = "inception-v3", *after = NULL;
	const struct option_spec options[] = {
		{"module", 'm', OPTION_STRING, &module, "compute|network|PREFIX",
	     "layers: Inception-v3's 35x35x288 (default) or 17x17x768 module, or what begins so"},
		{"model", 0, OPTION_STRING, &from, "MODEL", "whose layers they are, with its times (default inception-v3)"},
		{"count", 'n', OPTION_U64, &count, "N", "how many, one behind the other (default 1)", .min = 1,
	     .max = 1u << 16},
		{"after", 0, OPTION_STRING, &after, "PREFIX",
	     "they follow the layer whose gradients begin so (default: the module itself)"},
		{0},
	};
	const struct options_usage usage = {"sim traces add",
	                                    "FOLDER NEW-FOLDER",
	                                    "Adds layers to traces, as if a larger network had been trained.",
	                                    options,
	                                    2,
	                                    2};
	struct model model = {0};
	struct traces traces = {0};
	struct error err = {0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	for (size_t i = 0; i < sizeof known_modules / sizeof known_modules[0]; i++)
		if (strcmp(module, known_modules[i].name) == 0)
			module = known_modules[i].prefix;
	enum esp_status status = workload_traces_load(&traces, argv[1], &err);
	if (status == ESP_OK)
		status = sim_tool_model_open(&model, from, NULL, &err);
	if (status == ESP_OK)
		status = workload_traces_add(&traces, &(struct traces_addition){&model, module, after, (uint32_t)count}, &err);
	if (status == ESP_OK)
		status = workload_traces_save(&traces, argv[2], &err);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
	return finish(usage.command, status, &err);
}

/* ---- scale ---- */

static int run_scale(int argc, char **argv)
{
	double factor = 0;
	const struct option_spec options[] = {
		{"compute", 'c', OPTION_DOUBLE, &factor, "X", "accelerators that are so many times as fast"},
		{0},
	};
	const struct options_usage usage = {"sim traces scale",
	                                    "FOLDER NEW-FOLDER",
	                                    "Divides all times of traces, as if the accelerators had been faster.",
	                                    options,
	                                    2,
	                                    2};
	struct traces traces = {0};
	struct error err = {0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (!(factor >= 1e-6 && factor <= 1e6))
		return complain_usage("%s: --compute X is needed, from 1e-6 to 1e6", usage.command);
	enum esp_status status = workload_traces_load(&traces, argv[1], &err);
	if (status == ESP_OK) {
		workload_traces_scale(&traces, factor);
		status = workload_traces_save(&traces, argv[2], &err);
	}
	workload_traces_fini(&traces);
	return finish(usage.command, status, &err);
}

/* ---- show ---- */

static void show_text(const struct traces *traces, const struct replay *replay)
{
	const struct model *model = &replay->model;
	printf("model              %s\n", model->name[0] ? model->name : "-");
	printf("worker files       %" PRIu32 "\n", replay->file_count);
	printf("servers            %" PRIu32 "%s\n", replay->server_count,
	       traces->server_count ? "" : " (no distribution file: the reverse of the gradients)");
	printf("parameters         %" PRIu32 "\n", model->parameter_count);
	printf("distributed        %" PRIu64 " bytes\n", workload_model_bytes(model));
	printf("aggregated         %" PRIu64 " bytes\n", workload_model_aggregated_bytes(model));
	printf("forward pass       %.6g s, order %s\n", model->forward_s, traces->layer_count ? "known" : "unknown");
	printf("last gradient      %.6g s after it, on the slowest worker\n", model->backward_s);
}

static enum esp_status show_json(const struct traces *traces, const struct replay *replay)
{
	struct json json;
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "model", replay->model.name);
	json_put_u64(&json, "worker_files", replay->file_count);
	json_put_u64(&json, "distribution_files", traces->server_count);
	json_put_u64(&json, "servers", replay->server_count);
	json_put_u64(&json, "parameters", replay->model.parameter_count);
	json_put_u64(&json, "distributed_bytes", workload_model_bytes(&replay->model));
	json_put_u64(&json, "aggregated_bytes", workload_model_aggregated_bytes(&replay->model));
	json_put_double(&json, "forward_s", replay->model.forward_s);
	json_put_bool(&json, "forward_order_known", traces->layer_count > 0);
	json_put_double(&json, "last_gradient_s", replay->model.backward_s);
	json_object_end(&json);
	return json_fini(&json);
}

static int run_show(int argc, char **argv)
{
	bool json = false;
	const struct option_spec options[] = {{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"}, {0}};
	const struct options_usage usage = {
		"sim traces show",
		"FOLDER",
		"Reads traces as a simulation would, and says what is in them, or what is wrong and where.",
		options,
		1,
		1};
	struct traces traces = {0};
	struct replay replay = {0};
	struct error err = {0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	struct error why = {0};
	enum esp_status status = workload_traces_load(&traces, argv[1], &err);
	if (status == ESP_OK && (status = workload_replay_init(&replay, &traces, &why)) != ESP_OK)
		(void)error_set(&err, status, "%.60s: %.180s", argv[1], why.text);
	if (status == ESP_OK && json)
		status = show_json(&traces, &replay);
	else if (status == ESP_OK)
		show_text(&traces, &replay);
	workload_replay_fini(&replay);
	workload_traces_fini(&traces);
	return finish(usage.command, status, &err);
}

/* ---- which of them ---- */

static const struct cli_command commands[] = {
	{"make", "writes the traces that training a model would have left", run_make},
	{"add", "adds layers to traces: compute-heavy, network-heavy, or of any model", run_add},
	{"scale", "makes the accelerators of traces faster or slower", run_scale},
	{"show", "says what is in traces, or what is wrong with them", run_show},
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const char *name_at(const void *list, size_t index)
{
	(void)list;
	return index < COMMAND_COUNT ? commands[index].name : NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: espalier sim traces COMMAND [options]\n\n"
	      "A folder of traces holds when each worker had each gradient: worker-RANK-ITERATION.csv, "
	      "distribution-SERVER.csv and\n"
	      "model.json. `espalier sim record` records them, `espalier sim run --traces` simulates them.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
}

static int run(int argc, char **argv)
{
	bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
	if (argc < 2 || help) {
		print_help(help ? stdout : stderr);
		return help ? EXIT_OK : EXIT_USAGE;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i].name, argv[1]) == 0)
			return commands[i].run(argc - 1, argv + 1);
	const char *near = word_nearest(argv[1], name_at, NULL);
	return near ? complain_usage("sim traces: unknown command '%s'; did you mean '%s'?", argv[1], near)
	            : complain_usage("sim traces: unknown command '%s'; see espalier sim traces --help", argv[1]);
}

const struct cli_command cli_sim_traces = {"traces", "makes, changes and shows traces of training", run};
