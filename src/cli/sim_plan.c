/*
 * sim_plan.c - espalier sim plan: any plan, run once on a modelled network.
 */
#include <stdio.h>

#include "base/number.h"
#include "cli/sim.h"
#include "plan/check.h"
#include "report/table.h"
#include "tools/plan/plan_json.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_work.h"
#include "tools/sim/sim_film.h"
#include "tools/sim/sim_network.h"

#define COMMAND "sim plan"

struct given {
	struct plan_request plan;
	struct sim_network network;
	const char *trace;
	bool json;
};

static enum esp_status print_words(const struct plan *plan, const struct once_result *result)
{
	static const char *const headers[] = {"links", "bytes", NULL};
	char bytes[NUMBER_BYTES_TEXT];
	struct table table;

	printf("%s %s, %u node%s, %llu chunk%s: %.9g s; %llu message%s, %s\n", plan_tool_origin(plan),
	       plan_collective_name(plan->chunks.collective), plan->nodes, plural(plan->nodes),
	       (unsigned long long)plan->chunks.chunk_count, plural(plan->chunks.chunk_count), result->seconds,
	       (unsigned long long)result->messages, plural(result->messages), number_format_bytes(result->bytes, bytes));
	table_init(&table, headers);
	for (unsigned i = 0; i < TOPOLOGY_CLASSES; i++) {
		if (result->class_bytes[i] == 0)
			continue;
		table_cell(&table, "%s", topology_class_name((enum topology_class)i));
		table_cell(&table, "%llu", (unsigned long long)result->class_bytes[i]);
	}
	enum esp_status status = table.count > 0 ? table_print(&table, stdout) : ESP_OK;
	table_fini(&table);
	return status;
}

static enum esp_status print_json(const struct given *given, const struct plan *plan, const struct once_result *result)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "planner", plan_tool_origin(plan));
	json_put_string(&json, "collective", plan_collective_name(plan->chunks.collective));
	json_put_u64(&json, "workers", plan->workers);
	json_put_u64(&json, "nodes", plan->nodes);
	json_put_u64(&json, "chunk_count", plan->chunks.chunk_count);
	sim_tool_network_json(&given->network, &json);
	json_put_double(&json, "seconds", result->seconds);
	json_put_double(&json, "first_done_s", result->first);
	json_put_u64(&json, "messages", result->messages);
	json_put_u64(&json, "wire_bytes", result->bytes);
	json_key(&json, "link_bytes");
	sim_tool_bytes_json(result->class_bytes, &json);
	json_object_end(&json);
	return json_fini(&json);
}

static enum esp_status film_run(const struct given *given, const struct plan *plan, struct once_result *result,
                                struct error *err)
{
	struct sim_film film;
	struct error closing = {0};

	if (!given->trace)
		return sim_tool_network_run(&given->network, plan, NULL, NULL, result, err);
	enum esp_status status = sim_tool_film_open(&film, given->trace, plan, err);
	if (status != ESP_OK)
		return status;
	status = sim_tool_network_run(&given->network, plan, sim_tool_film_message, &film, result, err);
	enum esp_status closed = sim_tool_film_close(&film, status == ESP_OK, &closing);
	if (closed != ESP_OK)
		*err = closing;
	return status != ESP_OK ? status : closed;
}

/* A plan from a file is checked first: a wrong one would only wait for ever. */
static int simulate(const struct given *given, const struct plan *plan, bool is_read)
{
	struct plan_report report;
	struct once_result result;
	struct error err = {0};

	if (is_read && plan_check(plan, NULL, &report, NULL, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	enum esp_status status = film_run(given, plan, &result, &err);
	if (status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	status = given->json ? print_json(given, plan, &result) : print_words(plan, &result);
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": cannot write to the standard output");
}

static int parse(struct given *given, int *argc, char **argv)
{
	struct option_spec options[PLAN_OPTION_MAX + SIM_NETWORK_OPTIONS];
	size_t count = plan_tool_request_options(&given->plan, options);
	char about[PLAN_ABOUT_TEXT];
	struct option_spec network[SIM_NETWORK_OPTIONS];
	size_t more = sim_tool_network_options(&given->network, network);

	options[count++] = plan_tool_request_planner(&given->plan);
	for (size_t i = 0; i < more; i++) {
		if (network[i].out != &given->network.place) /* the plan's --place says it */
			options[count++] = network[i];
	}
	options[count++] = (struct option_spec){
		"trace", 't', OPTION_STRING, &given->trace, "FILE", "write every message for Perfetto or chrome://tracing"};
	options[count++] = (struct option_spec){"json", 0, OPTION_FLAG, &given->json, NULL, "print JSON"};
	options[count] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"[FILE]",
		plan_tool_about(
			"Runs a plan in virtual time: the plan of FILE (- is the standard input), or one that is made here, by\n"
			"the executor that jobs have, on a modelled network. Each group is a rack.\n\n"
			"  espalier plan make ring --nodes 8 --bytes 100M | espalier sim plan - --gbps 25 --trace ring.json\n"
			"  espalier sim plan --planner two-level --nodes 64 --racks 8 --bytes 100M --oversubscribe 4",
			about),
		options,
		0,
		1};
	return options_parse(&usage, argc, argv);
}

static int run(int argc, char **argv)
{
	struct given given = {0};
	struct plan *plan = NULL;
	int exit_status = parse(&given, &argc, argv);

	if (exit_status >= 0)
		return exit_status;
	given.network.place = given.plan.place;
	exit_status = sim_tool_network_take(&given.network, COMMAND);
	if (exit_status < 0)
		exit_status = plan_tool_from(&given.plan, COMMAND, argc > 1 ? argv[1] : NULL, NULL, &plan);
	if (exit_status < 0)
		exit_status = simulate(&given, plan, argc > 1);
	plan_close(plan);
	sim_tool_network_fini(&given.network);
	return exit_status;
}

const struct cli_command cli_sim_plan = {"plan", "runs a plan once on a modelled network", run};
