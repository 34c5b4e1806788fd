/*
 * sim_run.c - espalier sim run: how long an iteration of training takes with each mechanism, on a network of one's
 * choice.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sim.h"
#include "report/rows.h"
#include "tools/sim/sim_case.h"
#include "tools/sim/sim_network.h"
#include "tools/sim/sim_pace.h"
#include "tools/sim/sim_story.h"

#define COMMAND "sim run"
#define GO_ON (-1)

struct given {
	struct sim_case c;
	const char *mechanism, *trace;
	bool json;
};

struct outcome {
	const struct mechanism *mechanism;
	struct train_result result;
	char reason[sizeof(((struct error *)0)->text)]; /* why there is no result; empty if there is */
};

static int parse(struct given *given, int *argc, char **argv)
{
	const struct option_spec options[] = {
		SIM_CASE_OPTIONS(&given->c),
		{"mechanism", 0, OPTION_STRING, &given->mechanism, "NAME|all", "one of those below (default all)"},
		{"trace", 't', OPTION_STRING, &given->trace, "FILE",
	     "writes the run for Perfetto or chrome://tracing; one mechanism only"},
		{"json", 0, OPTION_FLAG, &given->json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Runs iterations of training in virtual time and says how long one takes: Espalier's own plans, run by its\n"
		"own executor, on a modelled network with modelled computing. Speedups are relative to the mechanism server.\n"
		"espalier sim run --collective NAME --help is about a collective alone.\n\n"
		"  espalier sim run --model vgg-16 --workers 32 --gbps 10\n"
		"  espalier sim run --model resnet-200 --mechanism ring --compute 2 --trace ring.json\n"
		"  espalier sim run --traces seen --workers 64 --topology racks.txt\n\n"
		"mechanisms: server, aggregation, multicast, multicast+aggregation, ring, ring-whole, ring+multicast,\n"
		"  butterfly, halving-doubling, double-tree, two-level, hub",
		options,
		0,
		0};
	return options_parse(&usage, argc, argv);
}

static int check(struct given *given)
{
	if (!given->c.model == !given->c.traces)
		return complain_usage(
			COMMAND ": name a model with --model (espalier sim models lists them), or a folder with --traces; "
					"or a collective without training with --collective");
	return sim_tool_case_check(&given->c);
}

/* ---- what is to be run ---- */

/* The first one is what the others are compared with, asked for or not. */
static int choose(const struct given *given, struct outcome *outcomes, size_t *out_count)
{
	const char *name = given->mechanism;
	const struct mechanism *named = NULL;

	*out_count = 1;
	outcomes[0].mechanism = workload_mechanism_at(0);
	if (strcmp(name, "all") == 0) {
		for (; workload_mechanism_at(*out_count); (*out_count)++)
			outcomes[*out_count].mechanism = workload_mechanism_at(*out_count);
	} else {
		int status = sim_tool_case_mechanism(&given->c, name, &named);

		if (status != GO_ON)
			return status;
		if (named != workload_mechanism_at(0))
			outcomes[(*out_count)++].mechanism = named;
	}
	if (given->trace && strcmp(name, "all") == 0)
		return complain_usage(COMMAND ": --trace shows one mechanism; name it with --mechanism");
	return GO_ON;
}

/* ---- running ---- */

static enum esp_status run_one(const struct given *given, const struct sim_source *source, const struct load *load,
                               struct outcome *outcome, bool is_traced, struct error *err)
{
	struct trial trial = sim_tool_case_trial(&given->c, source, load, outcome->mechanism);
	struct sim_story story;

	if (!is_traced)
		return sim_trial_run(&trial, &outcome->result, err);
	const struct sim_story_cast cast = {
		.workers = load->workers,
		.servers = outcome->mechanism->spread ? (uint32_t)given->c.servers : 0,
		.has_hubs = outcome->mechanism->uses_hubs,
		.shares_links = given->c.fluid,
		.model = &source->replay.model,
	};
	enum esp_status status = sim_tool_story_open(&story, given->trace, &cast, err);
	if (status != ESP_OK)
		return status;
	trial.train.watch = sim_tool_story_watch(&story);
	status = sim_trial_run(&trial, &outcome->result, err);
	enum esp_status written = sim_tool_story_close(&story, status == ESP_OK, status == ESP_OK ? err : NULL);
	return status == ESP_OK ? written : status;
}

/* Of several, those that the cluster has no place for are left out, with the reason. */
static enum esp_status run_all(const struct given *given, const struct sim_source *source, const struct load *load,
                               struct outcome *outcomes, size_t count, struct error *err)
{
	bool is_one = strcmp(given->mechanism, "all") != 0;
	enum esp_status status = ESP_OK;
	size_t failed = 0;
	struct sim_pace pace;

	sim_tool_pace_begin(&pace, COMMAND, count);
	for (size_t i = 0; i < count && status == ESP_OK; i++) {
		bool is_asked = !is_one || i + 1 == count;

		status = run_one(given, source, load, &outcomes[i], given->trace && is_asked, err);
		if (status == ESP_EINVAL && !(is_one && is_asked)) {
			snprintf(outcomes[i].reason, sizeof(outcomes[i].reason), "%s", err->text);
			error_clear(err);
			failed++;
			status = ESP_OK;
		}
		if (status == ESP_OK)
			sim_tool_pace_step(&pace);
	}
	sim_tool_pace_end(&pace);
	if (status != ESP_OK)
		return status;
	return failed < count ? ESP_OK : error_set(err, ESP_EINVAL, "no mechanism can be run: %.220s", outcomes[0].reason);
}

/* ---- showing ---- */

static double speedup(const struct outcome *outcomes, const struct outcome *of)
{
	return outcomes[0].reason[0] ? NAN : outcomes[0].result.iteration_s / of->result.iteration_s;
}

static void put_outcome(struct rows *rows, const struct outcome *outcomes, const struct outcome *outcome)
{
	const struct train_result *result = &outcome->result;

	rows_text(rows, outcome->mechanism->name);
	if (outcome->reason[0]) {
		rows_text(rows, outcome->reason);
		rows_skip_rest(rows);
		return;
	}
	rows_skip(rows);
	rows_double(rows, result->iteration_s);
	rows_double(rows, speedup(outcomes, outcome));
	for (int class = TOPOLOGY_HOST_OUT; class <= TOPOLOGY_RACK_IN; class++)
		rows_u64(rows, result->class_bytes[class]);
	struct json *json = rows_nested(rows);
	if (json)
		sim_tool_bytes_json(result->class_bytes, json);
	rows_u64(rows, result->messages);
}

static void put_heading(const struct given *given, const struct sim_source *source, struct json *json)
{
	char text[SIM_CASE_TEXT];

	if (given->json) {
		json_init(json, stdout);
		json_object_begin(json);
		sim_tool_case_put(json, &given->c, source, NULL);
		json_key(json, "results");
		return;
	}
	puts(sim_tool_case_text(&given->c, source, NULL, text));
	if (sim_tool_case_notes(&given->c, source, text)[0])
		puts(text);
}

static enum esp_status print(const struct given *given, const struct sim_source *source, const struct outcome *outcomes,
                             size_t first, size_t count)
{
	static const struct column columns[] = {
		{"mechanism", "mechanism"},
		{NULL, "reason"},
		{"iteration s", "iteration_s", "%.4g"},
		{"speedup", "speedup", "%.2fx"},
		{"host out MB", NULL, "%.1f", 1e-6},
		{"host in MB", NULL, "%.1f", 1e-6},
		{"rack out MB", NULL, "%.1f", 1e-6},
		{"rack in MB", NULL, "%.1f", 1e-6},
		{NULL, "bytes"},
		{NULL, "messages"},
		{0},
	};
	struct json json;
	struct rows rows;

	put_heading(given, source, &json);
	rows_begin(&rows, columns, given->json ? &json : NULL);
	for (size_t i = first; i < count; i++)
		put_outcome(&rows, outcomes, &outcomes[i]);
	enum esp_status status = rows_finish(&rows, stdout);
	for (size_t i = first; i < count && !given->json; i++) {
		if (outcomes[i].reason[0])
			complain_note(COMMAND ": %s is left out: %s", outcomes[i].mechanism->name, outcomes[i].reason);
	}
	return status;
}

static int simulate(struct given *given, struct outcome *outcomes, size_t count)
{
	struct sim_source source = {0};
	struct load load = {0};
	struct error err = {0};
	enum esp_status status = sim_tool_source_open(&source, &given->c, &err);

	if (status == ESP_OK)
		status = sim_tool_source_load(&source, &given->c, &load, &err);
	if (status == ESP_OK)
		status = run_all(given, &source, &load, outcomes, count, &err);
	size_t first = strcmp(given->mechanism, "all") == 0 ? 0 : count - 1;
	if (status == ESP_OK)
		status = print(given, &source, outcomes, first, count);
	workload_load_fini(&load);
	sim_tool_source_close(&source);
	return complain_end(COMMAND, status, &err);
}

static int run(int argc, char **argv)
{
	struct given given = {.c = SIM_CASE_INIT(COMMAND), .mechanism = "all"};
	struct outcome *outcomes = calloc(SIM_MECHANISMS_MAX, sizeof(*outcomes));
	size_t count = 0;

	if (sim_collective_is_meant(argc, argv)) {
		free(outcomes);
		return cli_sim_collective.run(argc, argv);
	}
	if (!outcomes)
		return complain(COMMAND ": no memory");
	int status = parse(&given, &argc, argv);
	if (status == GO_ON)
		status = check(&given);
	if (status == GO_ON)
		status = choose(&given, outcomes, &count);
	if (status == GO_ON)
		status = simulate(&given, outcomes, count);
	free(outcomes);
	return status;
}

const struct cli_command cli_sim_run = {"run", "how long an iteration of training takes, mechanism by mechanism", run};
