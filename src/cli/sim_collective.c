/*
 * sim_collective.c - espalier sim run --collective: a collective alone, by each mechanism, on a modelled network.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/word.h"
#include "cli/sim.h"
#include "network/topo/groups.h"
#include "report/rows.h"
#include "tools/plan/plan_options.h"
#include "tools/sim/sim_film.h"
#include "tools/sim/sim_network.h"

#define COMMAND "sim run"
#define WORKERS_MAX (1u << 20)
#define OUTCOMES_MAX 32u
#define CHUNK_BYTES ((uint64_t)1 << 20)

/* Names in the operator paper, and the planners here. The others are compared with the first one. */
static const struct mechanism {
	const char *name, *planner;
	bool has_servers, is_whole;
} mechanisms[] = {
	{"server", "central", true, false},
	{"aggregation", "switch-sum", true, false},
	{"multicast", "switch-copy", true, false},
	{"multicast+aggregation", "switch", true, false},
	{"flat", "flat", false, false},
	{"ring", "ring", false, false},
	{"ring-whole", "ring", false, true},
	{"ring+multicast", "ring-switch", false, false},
	{"butterfly", "butterfly", false, false},
	{"halving-doubling", "halving-doubling", false, false},
	{"tree", "tree", false, false},
	{"double-tree", "double-tree", false, false},
	{"two-level", "two-level", false, false},
	{"hub", "hub", false, false},
};
#define MECHANISMS (sizeof(mechanisms) / sizeof(mechanisms[0]))

struct given {
	struct sim_network network;
	const char *mechanism, *trace;
	int collective;
	uint64_t bytes, chunk, workers, servers, racks, root;
	bool json, racks_given;
};

struct outcome {
	const struct mechanism *mechanism;
	struct once_result result;
	char reason[256]; /* why there is none; empty if there is */
};

static const char *mechanism_name(const void *list, size_t index)
{
	(void)list;
	return index < MECHANISMS ? mechanisms[index].name : NULL;
}

static const char *const *collective_names(void)
{
	static const char *names[PLAN_COLLECTIVE_COUNT + 1];

	for (unsigned i = 0; i < PLAN_COLLECTIVE_COUNT; i++)
		names[i] = plan_collective_name((enum plan_collective)i);
	return names;
}

static bool is_given(int argc, char **argv, const char *option)
{
	size_t length = strlen(option);

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strncmp(argv[i], option, length) == 0 && (argv[i][length] == '\0' || argv[i][length] == '='))
			return true;
	}
	return false;
}

bool sim_collective_is_meant(int argc, char **argv)
{
	return is_given(argc, argv, "--collective");
}

/* ---- what to run ---- */

static int parse(struct given *given, int *argc, char **argv)
{
	struct option_spec options[SIM_NETWORK_OPTIONS + 16];
	const struct option_spec own[] = {
		{"collective", 0, OPTION_CHOICE, &given->collective, "NAME", "what to do", .choices = collective_names()},
		{"bytes", 'b', OPTION_BYTES, &given->bytes, "B", "size of the whole buffer (default 100M)"},
		{"chunk", 0, OPTION_BYTES, &given->chunk, "B", "most bytes of a chunk (default 1M)", .min = 1, .max = 1u << 30},
		{"workers", 'w', OPTION_U64, &given->workers, "N", "workers (default 32; --topology: a host each)", .min = 1,
	     .max = WORKERS_MAX},
		{"servers", 'p', OPTION_U64, &given->servers, "N", "servers of those mechanisms that have them (default 1)",
	     .min = 1, .max = WORKERS_MAX},
		{"racks", 0, OPTION_U64, &given->racks, "N", "racks that the workers are spread over (default 1)", .min = 1,
	     .max = WORKERS_MAX, .given = &given->racks_given},
		{"root", 'r', OPTION_U64, &given->root, "R", "root of broadcast, reduce, gather and scatter (default 0)",
	     .max = WORKERS_MAX},
		{"mechanism", 0, OPTION_STRING, &given->mechanism, "NAME|all", "one of those below (default all)"},
		{"trace", 't', OPTION_STRING, &given->trace, "FILE",
	     "write every message for Perfetto or chrome://tracing; one mechanism only"},
		{"json", 0, OPTION_FLAG, &given->json, NULL, "print JSON"},
	};
	size_t count = sim_tool_network_options(&given->network, options);

	memcpy(options + count, own, sizeof(own));
	options[count + sizeof(own) / sizeof(own[0])] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"--collective NAME",
		"Runs a collective in virtual time, by each mechanism: Espalier's own plans, run by its own executor, on a\n"
		"modelled network. Speedups are relative to the mechanism server.\n\n"
		"  espalier sim run --collective allreduce --bytes 100M --workers 64 --racks 8 --gbps 25 --oversubscribe 4\n"
		"  espalier sim run --collective allreduce --workers 16 --mechanism ring --trace ring.json\n\n"
		"mechanisms: server, aggregation, multicast, multicast+aggregation, flat, ring, ring-whole, ring+multicast,\n"
		"  butterfly, halving-doubling, tree, double-tree, two-level, hub",
		options,
		0,
		0};
	return options_parse(&usage, argc, argv);
}

static int choose(const struct given *given, struct outcome *outcomes, size_t *out_count)
{
	bool all = strcmp(given->mechanism, "all") == 0;
	size_t count = 0;

	for (size_t i = 0; i < MECHANISMS; i++) {
		if (i == 0 || all || strcmp(mechanisms[i].name, given->mechanism) == 0)
			outcomes[count++].mechanism = &mechanisms[i];
	}
	if (!all && count == 1 && strcmp(mechanisms[0].name, given->mechanism) != 0) {
		const char *near = word_nearest(given->mechanism, mechanism_name, NULL);

		return complain_usage(near ? COMMAND ": there is no mechanism '%s'; did you mean '%s'?"
		                           : COMMAND
		                          ": there is no mechanism '%s'; see espalier sim run --collective allreduce --help",
		                      given->mechanism, near);
	}
	if (given->trace && all)
		return complain_usage(COMMAND ": --trace shows one mechanism; name it with --mechanism");
	*out_count = count;
	return -1;
}

/* Groups by rack: as the topology has them, or as asked for. NULL: one rack. */
static enum esp_status group_workers(const struct given *given, uint32_t **out, struct error *err)
{
	uint32_t workers = (uint32_t)given->workers;
	uint32_t *group_of = malloc(workers * sizeof(*group_of)), *place = malloc(workers * sizeof(*place));
	enum esp_status status =
		group_of && place ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u workers", workers);

	if (status == ESP_OK && given->network.topology) {
		status = sim_tool_network_place(&given->network, workers, place, err);
		if (status == ESP_OK)
			status = topology_groups(given->network.topology, place, workers, group_of, err);
	} else if (status == ESP_OK) {
		groups_racks(workers, (uint32_t)given->racks, (enum placement)given->network.place, group_of);
	}
	free(place);
	if (status != ESP_OK) {
		free(group_of);
		group_of = NULL;
	}
	*out = group_of;
	return status;
}

static bool has_blocks(enum plan_collective collective)
{
	return collective != PLAN_ALLREDUCE && collective != PLAN_BROADCAST && collective != PLAN_REDUCE &&
	       collective != PLAN_BARRIER;
}

static enum esp_status open_plan(const struct given *given, const struct mechanism *mechanism, const uint32_t *group_of,
                                 struct plan **out, struct error *err)
{
	enum plan_collective collective = (enum plan_collective)given->collective;
	uint64_t bytes = collective == PLAN_BARRIER ? 0
	                 : has_blocks(collective)   ? given->bytes / given->workers
	                                            : given->bytes;
	struct plan_spec spec = {
		.chunks = {
			.collective = collective,
			.workers = (uint32_t)given->workers,
			.root = (uint32_t)given->root,
			.bytes = bytes,
			.chunk_bytes = mechanism->is_whole ? 0 : given->chunk,
		},
		.group_of = group_of,
		.servers = mechanism->has_servers ? (uint32_t)given->servers : 0,
	};

	return plan_open(plan_planner_find(mechanism->planner), &spec, out, err);
}

static enum esp_status measure(const struct given *given, struct outcome *outcome, const uint32_t *group_of,
                               struct error *err)
{
	struct plan *plan = NULL;
	struct sim_film film;
	bool is_filmed = given->trace && (strcmp(outcome->mechanism->name, given->mechanism) == 0);
	enum esp_status status = open_plan(given, outcome->mechanism, group_of, &plan, err);

	if (status == ESP_OK && is_filmed)
		status = sim_tool_film_open(&film, given->trace, plan, err);
	if (status != ESP_OK) {
		plan_close(plan);
		return status;
	}
	status = sim_tool_network_run(&given->network, plan, is_filmed ? sim_tool_film_message : NULL, &film,
	                              &outcome->result, err);
	if (is_filmed) {
		struct error closing = {0};
		enum esp_status closed = sim_tool_film_close(&film, status == ESP_OK, &closing);

		if (status == ESP_OK && closed != ESP_OK) {
			status = closed;
			*err = closing;
		}
	}
	plan_close(plan);
	return status;
}

/* ---- what came of it ---- */

static double speedup(const struct outcome *outcomes, const struct outcome *outcome)
{
	return outcome->result.seconds > 0 ? outcomes[0].result.seconds / outcome->result.seconds : 1;
}

static void put_outcome(struct rows *rows, const struct outcome *outcomes, const struct outcome *outcome)
{
	const struct once_result *result = &outcome->result;

	rows_text(rows, outcome->mechanism->name);
	rows_text(rows, outcome->mechanism->planner);
	rows_text(rows, outcome->reason[0] ? outcome->reason : NULL);
	if (outcome->reason[0]) {
		rows_skip_rest(rows);
		return;
	}
	rows_double(rows, result->seconds);
	rows_double(rows, speedup(outcomes, outcome));
	rows_u64(rows, result->messages);
	rows_u64(rows, result->bytes);
	for (unsigned class = TOPOLOGY_HOST_OUT; class <= TOPOLOGY_RACK_IN; class++)
		rows_u64(rows, result->class_bytes[class]);
	struct json *json = rows_nested(rows);
	if (json)
		sim_tool_bytes_json(result->class_bytes, json);
}

static void put_heading(const struct given *given, struct json *json)
{
	json_init(json, stdout);
	json_object_begin(json);
	json_put_string(json, "collective", plan_collective_name((enum plan_collective)given->collective));
	json_put_u64(json, "bytes", given->bytes);
	json_put_u64(json, "chunk_bytes", given->chunk);
	json_put_u64(json, "workers", given->workers);
	json_put_u64(json, "servers", given->servers);
	json_put_u64(json, "racks", given->racks);
	sim_tool_network_json(&given->network, json);
	json_key(json, "results");
}

static enum esp_status print(const struct given *given, const struct outcome *outcomes, size_t count)
{
	static const struct column columns[] = {
		{"mechanism", "mechanism"},
		{NULL, "planner"},
		{NULL, "left_out"},
		{"seconds", "seconds", "%.6f"},
		{"speedup", "speedup", "%.2f"},
		{"messages", "messages"},
		{NULL, "wire_bytes"},
		{"out of hosts", NULL, "%.1f MB", 1e-6},
		{"into hosts", NULL, "%.1f MB", 1e-6},
		{"out of racks", NULL, "%.1f MB", 1e-6},
		{"into racks", NULL, "%.1f MB", 1e-6},
		{NULL, "link_bytes"},
		{0},
	};
	struct json json;
	struct rows rows;

	if (given->json)
		put_heading(given, &json);
	rows_begin(&rows, columns, given->json ? &json : NULL);
	for (size_t i = 0; i < count; i++) {
		if (given->json || !outcomes[i].reason[0])
			put_outcome(&rows, outcomes, &outcomes[i]);
	}
	enum esp_status status = rows_finish(&rows, stdout);
	for (size_t i = 0; i < count && !given->json; i++) {
		if (outcomes[i].reason[0])
			printf("\nleft out: %s: %s\n", outcomes[i].mechanism->name, outcomes[i].reason);
	}
	return status;
}

static int compare(const struct given *given, struct outcome *outcomes, size_t count)
{
	uint32_t *group_of = NULL;
	struct error err = {0};
	size_t left_out = 0;
	int exit_status = -1;

	err.status = group_workers(given, &group_of, &err);
	if (err.status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	for (size_t i = 0; exit_status < 0 && i < count; i++) {
		enum esp_status status = measure(given, &outcomes[i], group_of, &err);

		/* With all of them, what one cannot do is said and the others are compared. */
		if (status == ESP_EINVAL && count > 2)
			left_out += snprintf(outcomes[i].reason, sizeof(outcomes[i].reason), "%s", err.text) > 0;
		else if (status != ESP_OK)
			exit_status = plan_tool_complain(COMMAND, &err);
	}
	free(group_of);
	if (exit_status < 0 && left_out == count)
		exit_status = complain_usage(COMMAND ": no mechanism can be run: %s", outcomes[0].reason);
	if (exit_status >= 0)
		return exit_status;
	enum esp_status printed = print(given, outcomes, count);
	return printed == ESP_OK ? EXIT_OK : complain(COMMAND ": cannot write to the standard output");
}

static int run(int argc, char **argv)
{
	struct given given = {
		.mechanism = "all", .bytes = 100u << 20, .chunk = CHUNK_BYTES, .servers = 1, .racks = 1, .collective = -1};
	struct outcome outcomes[OUTCOMES_MAX] = {0};
	size_t count = 0;

	if (is_given(argc, argv, "--model") || is_given(argc, argv, "--traces"))
		return complain_usage(
			COMMAND
			": --collective runs one collective alone; leave it out to simulate training with --model or --traces");
	int exit_status = parse(&given, &argc, argv);
	if (exit_status >= 0)
		return exit_status;
	if (given.collective < 0)
		return complain_usage(COMMAND ": which collective? Give --collective NAME");
	if (given.network.file && given.racks_given)
		return complain_usage(COMMAND ": --topology FILE says what the network is; --racks is for one that is made");
	exit_status = sim_tool_network_take(&given.network, COMMAND);
	if (exit_status < 0 && given.workers == 0)
		given.workers = given.network.topology ? given.network.topology->host_count : 32;
	if (exit_status < 0 && given.racks > given.workers)
		exit_status = complain_usage(COMMAND ": %llu racks are too many for %llu workers",
		                             (unsigned long long)given.racks, (unsigned long long)given.workers);
	if (exit_status < 0)
		exit_status = choose(&given, outcomes, &count);
	if (exit_status < 0)
		exit_status = compare(&given, outcomes, count);
	sim_tool_network_fini(&given.network);
	return exit_status;
}

const struct cli_command cli_sim_collective = {"run", "runs a collective by each mechanism on a modelled network", run};
