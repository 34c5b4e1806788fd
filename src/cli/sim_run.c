/*
 * sim_run.c - espalier sim run: how long an iteration of training takes with each mechanism, on a network of one's choice.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/infile.h"
#include "base/json.h"
#include "base/table.h"
#include "base/word.h"
#include "cli/options.h"
#include "cli/sim.h"
#include "cli/sim_model.h"
#include "cli/sim_story.h"
#include "sim/accelerator.h"
#include "sim/load_replay.h"
#include "sim/trial.h"

#define COMMAND "sim run"
#define GO_ON (-1)
#define MECHANISMS_MAX 32
#define SETS 3

struct given {
	const char *model, *traces, *mechanism, *topology, *trace, *accelerator;
	uint64_t workers, servers, iterations, seed, batch, value_bytes, split, racks;
	double gbps, server_gbps, compute, oversubscribe, delay_us;
	int set;
	bool set_given, servers_given, even_split, block, no_barrier, fluid, cut_through, json;
};

struct outcome {
	const struct mechanism *mechanism;
	struct train_result result;
	char reason[sizeof(((struct error *)0)->text)]; /* why there is no result; empty if there is */
};

static int parse(struct given *given, int *argc, char **argv)
{
	const struct cli_option options[] = {
		{"model", 'm', CLI_STRING, &given->model, "MODEL", "a name of espalier sim models, or a file"},
		{"traces", 0, CLI_STRING, &given->traces, "FOLDER", "what was recorded of a training, instead of a model (docs/traces.md)"},
		{"workers", 'w', CLI_U64, &given->workers, "N", "workers (default 32)", .min = 1, .max = LOAD_WORKERS_MAX},
		{"gbps", 'g', CLI_DOUBLE, &given->gbps, "G", "rate of a host's link, each way (default 25)"},
		{"server-gbps", 0, CLI_DOUBLE, &given->server_gbps, "G", "rate of a server's or hub's link (default: as --gbps)"},
		{"servers", 'p', CLI_U64, &given->servers, "N", "parameter servers (default 1, or as many as the traces have)", .min = 1,
		 .max = LOAD_WORKERS_MAX, .given = &given->servers_given},
		{"mechanism", 0, CLI_STRING, &given->mechanism, "NAME|all", "one of those below (default all)"},
		{"topology", 0, CLI_STRING, &given->topology, "FILE", "hosts, switches and links; instead of --gbps and --racks"},
		{"racks", 0, CLI_U64, &given->racks, "N", "racks, with the workers spread over them in order (default 1)", .min = 1, .max = LOAD_WORKERS_MAX},
		{"oversubscribe", 0, CLI_DOUBLE, &given->oversubscribe, "N", "a rack's uplink has hosts * rate / N (default 1)"},
		{"delay", 0, CLI_DOUBLE, &given->delay_us, "US", "of a host's link, one way, in microseconds (default 0)"},
		{"iterations", 'i', CLI_U64, &given->iterations, "N", "iterations (default 1, without the barrier 3)", .min = 1, .max = 10000},
		{"seed", 's', CLI_U64, &given->seed, "S", "draws the order of sending and the workers' speeds (default 0: the model's)"},
		{"compute", 'c', CLI_DOUBLE, &given->compute, "X", "all computing is X times as fast (default 1)"},
		{"set", 0, CLI_CHOICE, &given->set, "SET", "which of the model's values: public, factors, calibrated (default: the last it has)",
		 .choices = model_set_names, .given = &given->set_given},
		{"accelerator", 'a', CLI_STRING, &given->accelerator, "NAME|RATE", "compute the times with it instead"},
		{"batch", 'b', CLI_U64, &given->batch, "N", "samples of a worker and an iteration", .min = 1, .max = 1u << 30},
		{"value-bytes", 0, CLI_U64, &given->value_bytes, "N", "bytes of a value on the wire", .min = 1, .max = 64},
		{"even-split", 0, CLI_FLAG, &given->even_split, NULL, "every server has a part of every parameter, not whole ones in turn"},
		{"block", 0, CLI_FLAG, &given->block, NULL, "servers send all parameters to one worker after the other, not one parameter to all"},
		{"no-barrier", 0, CLI_FLAG, &given->no_barrier, NULL, "a sum goes out as soon as it is complete"},
		{"split", 0, CLI_U64, &given->split, "N", "messages of a parameter (default: as the mechanism has it)", .min = 1, .max = 4096},
		{"fluid", 0, CLI_FLAG, &given->fluid, NULL, "links are shared fairly; otherwise one message at a time, in order"},
		{"cut-through", 0, CLI_FLAG, &given->cut_through, NULL, "switches add while data streams in; otherwise when a parameter is there"},
		{"trace", 't', CLI_STRING, &given->trace, "FILE", "writes the run for Perfetto or chrome://tracing; one mechanism only"},
		{"json", 0, CLI_FLAG, &given->json, NULL, "print JSON"},
		{0},
	};
	const struct cli_usage usage = {
		COMMAND, "",
		"Runs iterations of training in virtual time and says how long one takes: Espalier's own plans, run by its own\n"
		"executor, on a modelled network with modelled computing. Speedups are relative to the mechanism server.\n"
		"espalier sim run --collective NAME --help is about a collective alone.\n\n"
		"  espalier sim run --model vgg-16 --workers 32 --gbps 10\n"
		"  espalier sim run --model resnet-200 --mechanism ring --compute 2 --trace ring.json\n"
		"  espalier sim run --traces seen --workers 64 --topology racks.txt\n\n"
		"mechanisms: server, aggregation, multicast, multicast+aggregation, ring, ring-whole, ring+multicast,\n"
		"  butterfly, halving-doubling, double-tree, two-level, hub",
		options, 0, 0};
	return cli_parse(&usage, argc, argv);
}

static bool is_positive(double value)
{
	return value > 0 && !isinf(value);
}

static int check(const struct given *given)
{
	if (!given->model == !given->traces)
		return cli_usage_error(COMMAND ": name a model with --model (espalier sim models lists them), or a folder with --traces; "
		                               "or a collective without training with --collective");
	if (given->traces && (given->set_given || given->accelerator || given->batch || given->value_bytes))
		return cli_usage_error(COMMAND ": --set, --accelerator, --batch and --value-bytes are for models; espalier sim traces scale changes traces");
	if (!is_positive(given->gbps) || !is_positive(given->compute) || !is_positive(given->oversubscribe))
		return cli_usage_error(COMMAND ": --gbps, --compute and --oversubscribe must be above 0");
	if (!(given->server_gbps >= 0) || isinf(given->server_gbps))
		return cli_usage_error(COMMAND ": --server-gbps must be above 0");
	if (!(given->delay_us >= 0 && given->delay_us <= 1e9))
		return cli_usage_error(COMMAND ": --delay is no time from 0 to 1e9 microseconds");
	if (given->no_barrier && given->iterations == 1)
		return cli_usage_error(COMMAND ": --no-barrier needs at least two iterations: what is measured lies between them");
	return GO_ON;
}

/* ---- what is to be run ---- */

static const char *mechanism_name(const void *list, size_t index)
{
	(void)list;
	return mechanism_at(index) ? mechanism_at(index)->name : NULL;
}

/* The first one is what the others are compared with, asked for or not. */
static int choose(const struct given *given, struct outcome *outcomes, size_t *out_count)
{
	const char *name = given->mechanism;

	*out_count = 1;
	outcomes[0].mechanism = mechanism_at(0);
	if (strcmp(name, "all") == 0) {
		for (; mechanism_at(*out_count); (*out_count)++)
			outcomes[*out_count].mechanism = mechanism_at(*out_count);
	} else if (!mechanism_find(name)) {
		const char *near = word_nearest(name, mechanism_name, NULL);

		return cli_usage_error(near ? COMMAND ": there is no mechanism '%s'; did you mean '%s'?"
		                            : COMMAND ": there is no mechanism '%s'; see espalier sim run --help",
		                       name, near);
	} else if (mechanism_find(name) != mechanism_at(0)) {
		outcomes[(*out_count)++].mechanism = mechanism_find(name);
	}
	if (given->trace && strcmp(name, "all") == 0)
		return cli_usage_error(COMMAND ": --trace shows one mechanism; name it with --mechanism");
	return GO_ON;
}

/* Of the set that was asked for, or of the last one that the model has. */
static enum esp_status open_model(const struct given *given, struct model_options *options, struct model *model, struct error *err)
{
	enum esp_status status = ESP_EINVAL;

	options->set = (enum model_set)given->set;
	if (given->set_given)
		return sim_model_open(model, given->model, options, err);
	for (int set = SETS; status == ESP_EINVAL && set-- > 0;) {
		options->set = (enum model_set)set;
		status = sim_model_open(model, given->model, options, err);
		if (status != ESP_OK && set > 0)
			model_fini(model);
	}
	return status;
}

static enum esp_status open_topology(const char *path, struct topology **out, struct error *err)
{
	struct infile file;
	enum esp_status status = infile_open(&file, path, err);

	if (status != ESP_OK)
		return status;
	status = topology_parse(file.text, file.length, out, err);
	infile_close(&file);
	return status;
}

static struct trial trial_of(const struct given *given, const struct load *load, const struct topology *topology, const struct mechanism *mechanism)
{
	return (struct trial){
		.train = {.load = load,
	                  .mechanism = mechanism,
	                  .topology = topology,
	                  .servers = (uint32_t)given->servers,
	                  .even_split = given->even_split,
	                  .block = given->block,
	                  .no_barrier = given->no_barrier,
	                  .fluid = given->fluid,
	                  .cut_through_sums = given->cut_through,
	                  .split = (uint32_t)given->split,
	                  .compute = given->compute,
	                  .iterations = (uint32_t)given->iterations},
		.gbps = given->gbps,
		.server_gbps = given->server_gbps,
		.racks = (uint32_t)given->racks,
		.oversubscribe = given->oversubscribe,
		.delay_s = given->delay_us * 1e-6,
	};
}

/* ---- running ---- */

static enum esp_status run_one(const struct given *given, const struct model *model, const struct load *load, const struct topology *topology,
                               struct outcome *outcome, bool is_traced, struct error *err)
{
	struct trial trial = trial_of(given, load, topology, outcome->mechanism);
	struct sim_story story;

	if (!is_traced)
		return trial_run(&trial, &outcome->result, err);
	const struct sim_story_cast cast = {load->workers, outcome->mechanism->spread ? (uint32_t)given->servers : 0, outcome->mechanism->uses_hubs, model};
	enum esp_status status = sim_story_open(&story, given->trace, &cast, err);
	if (status != ESP_OK)
		return status;
	trial.train.watch = sim_story_watch(&story);
	status = trial_run(&trial, &outcome->result, err);
	enum esp_status written = sim_story_close(&story, status == ESP_OK, status == ESP_OK ? err : NULL);
	return status == ESP_OK ? written : status;
}

/* Of several, those that the cluster has no place for are left out, with the reason. */
static enum esp_status run_all(const struct given *given, const struct model *model, const struct load *load, const struct topology *topology,
                               struct outcome *outcomes, size_t count, struct error *err)
{
	bool is_one = strcmp(given->mechanism, "all") != 0;

	for (size_t i = 0; i < count; i++) {
		bool is_asked = !is_one || i + 1 == count;
		enum esp_status status = run_one(given, model, load, topology, &outcomes[i], given->trace && is_asked, err);

		if (status != ESP_OK && (status != ESP_EINVAL || (is_one && is_asked)))
			return status;
		if (status != ESP_OK)
			snprintf(outcomes[i].reason, sizeof(outcomes[i].reason), "%s", err->text);
	}
	return ESP_OK;
}

/* ---- showing ---- */

static double speedup(const struct outcome *outcomes, const struct outcome *of)
{
	return outcomes[0].reason[0] ? NAN : outcomes[0].result.iteration_s / of->result.iteration_s;
}

static void put_outcome(struct json *json, const struct outcome *outcomes, const struct outcome *outcome)
{
	json_object_begin(json);
	json_put_string(json, "mechanism", outcome->mechanism->name);
	if (outcome->reason[0]) {
		json_put_string(json, "reason", outcome->reason);
	} else {
		json_put_double(json, "iteration_s", outcome->result.iteration_s);
		json_put_double(json, "speedup", speedup(outcomes, outcome));
		json_key(json, "bytes");
		json_object_begin(json);
		for (int class = 0; class < TOPOLOGY_CLASSES; class++)
			json_put_u64(json, topology_class_name((enum topology_class)class), outcome->result.class_bytes[class]);
		json_object_end(json);
		json_put_u64(json, "messages", outcome->result.messages);
	}
	json_object_end(json);
}

static enum esp_status print_json(const struct given *given, const struct model *model, const struct outcome *outcomes, size_t first, size_t count)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "model", model->name);
	if (given->traces)
		json_put_string(&json, "traces", given->traces);
	else
		json_put_string(&json, "set", model_set_names[model->set]);
	json_put_bool(&json, "times_assumed", model->times_assumed);
	json_put_u64(&json, "workers", given->workers);
	json_put_u64(&json, "servers", given->servers);
	if (given->topology)
		json_put_string(&json, "topology", given->topology);
	else
		json_put_double(&json, "gbps", given->gbps);
	json_put_double(&json, "compute", given->compute);
	json_put_u64(&json, "seed", given->seed);
	json_key(&json, "results");
	json_array_begin(&json);
	for (size_t i = first; i < count; i++)
		put_outcome(&json, outcomes, &outcomes[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

static void put_bytes(struct table *table, uint64_t bytes)
{
	table_cell(table, "%.1f", (double)bytes / 1e6);
}

static enum esp_status print_table(const struct given *given, const struct model *model, const struct outcome *outcomes, size_t first, size_t count)
{
	static const char *const headers[] = {"mechanism", "iteration s", "speedup", "host out MB", "host in MB", "between racks MB", NULL};
	struct table table;

	if (given->traces)
		printf("traces of %s in %s, ", model->name[0] ? model->name : "a training", given->traces);
	else
		printf("%s (%s values%s), ", model->name, model_set_names[model->set], model->times_assumed ? ", times assumed" : "");
	printf("%llu worker%s, ", (unsigned long long)given->workers, cli_plural(given->workers));
	if (given->topology)
		printf("%s\n", given->topology);
	else
		printf("%g Gbps\n", given->gbps);
	table_init(&table, headers);
	for (size_t i = first; i < count; i++) {
		const uint64_t *bytes = outcomes[i].result.class_bytes;

		table_cell(&table, "%s", outcomes[i].mechanism->name);
		for (int c = 1; c < 6 && outcomes[i].reason[0]; c++)
			table_cell(&table, "-");
		if (outcomes[i].reason[0])
			continue;
		table_cell(&table, "%.4g", outcomes[i].result.iteration_s);
		table_cell(&table, "%.2fx", speedup(outcomes, &outcomes[i]));
		put_bytes(&table, bytes[TOPOLOGY_HOST_OUT]);
		put_bytes(&table, bytes[TOPOLOGY_HOST_IN]);
		put_bytes(&table, bytes[TOPOLOGY_RACK_OUT]);
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	for (size_t i = first; i < count; i++) {
		if (outcomes[i].reason[0])
			cli_note(COMMAND ": %s is left out: %s", outcomes[i].mechanism->name, outcomes[i].reason);
	}
	return status;
}

/* From a model, or from traces. replay->model is what it is made from in both cases. */
static enum esp_status open_load(struct given *given, struct model_options *options, struct replay *replay, struct load *load, struct error *err)
{
	struct traces traces = {0};

	if (!given->traces) {
		enum esp_status status = open_model(given, options, &replay->model, err);

		return status == ESP_OK ? load_init(load, &replay->model, (uint32_t)given->workers, given->seed, err) : status;
	}
	enum esp_status status = traces_load(&traces, given->traces, err);
	if (status == ESP_OK)
		status = replay_init(replay, &traces, err);
	traces_fini(&traces);
	if (status == ESP_OK && !given->servers_given)
		given->servers = replay->server_count;
	return status == ESP_OK ? load_init_replay(load, replay, (uint32_t)given->workers, given->seed, err) : status;
}

static int simulate(struct given *given, struct outcome *outcomes, size_t count, struct model_options *options)
{
	struct replay replay = {0};
	struct load load = {0};
	struct topology *topology = NULL;
	struct error err = {0};
	enum esp_status status = open_load(given, options, &replay, &load, &err);

	if (status == ESP_OK && given->topology)
		status = open_topology(given->topology, &topology, &err);
	if (status == ESP_OK)
		status = run_all(given, &replay.model, &load, topology, outcomes, count, &err);
	size_t first = strcmp(given->mechanism, "all") == 0 ? 0 : count - 1;
	if (status == ESP_OK)
		status = (given->json ? print_json : print_table)(given, &replay.model, outcomes, first, count);
	load_fini(&load);
	replay_fini(&replay);
	topology_close(topology);
	return status == ESP_OK ? CLI_EXIT_OK : cli_fail(COMMAND ": %s", err.text[0] ? err.text : "the result could not be written");
}

static int run(int argc, char **argv)
{
	struct given given = {.mechanism = "all", .workers = 32, .servers = 1, .gbps = 25, .compute = 1, .oversubscribe = 1, .racks = 1};
	struct outcome *outcomes = calloc(MECHANISMS_MAX, sizeof(*outcomes));
	struct model_options wanted = {0};
	struct error err = {0};
	size_t count = 0;

	if (sim_collective_is_meant(argc, argv)) {
		free(outcomes);
		return cli_sim_collective.run(argc, argv);
	}
	if (!outcomes)
		return cli_fail(COMMAND ": no memory");
	int status = parse(&given, &argc, argv);
	if (status == GO_ON)
		status = check(&given);
	if (status == GO_ON)
		status = choose(&given, outcomes, &count);
	wanted.batch = (uint32_t)given.batch;
	wanted.value_bytes = (uint32_t)given.value_bytes;
	if (status == GO_ON && given.accelerator && accelerator_rate(given.accelerator, &wanted.flops, &err) != ESP_OK)
		status = cli_usage_error(COMMAND ": --accelerator: %s", err.text);
	if (status == GO_ON)
		status = simulate(&given, outcomes, count, &wanted);
	free(outcomes);
	return status;
}

const struct cli_command cli_sim_run = {"run", "how long an iteration of training takes, mechanism by mechanism", run};
