/*
 * plan_cost.c - espalier plan cost: the planners side by side, by what the checker counts.
 *
 * The time is the usual two-term estimate, from those counts alone:
 *
 *     rounds * alpha  +  8 * max(most bytes one node sends, most bytes one receives) / beta
 *
 * It takes the links of a node to carry both directions at once, the chunks to stream
 * without gaps, and the network between the nodes to be no bottleneck: it ranks plans for
 * a flat network and says nothing about oversubscribed links, for which the bytes between
 * groups are the column to read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/plan.h"
#include "plan/check.h"
#include "report/table.h"
#include "tools/plan/plan_json.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_work.h"
#include "tune/through.h"

#define COMMAND "plan cost"
#define BUFFER_BYTES ((uint64_t)64 << 20)
#define PLANNERS_MAX 64

struct cost_request {
	struct plan_request plan;
	double alpha_us;
	double beta_gbit;
	const char *switch_link; /* as given; NULL: not asked */
	double switch_links;     /* the link of a switch has so many times a node's rate */
	bool json;
};

struct cost {
	const struct planner *planner;
	struct plan_setup setup;
	struct plan_report report;
	double time_us;
	bool grouped;
	char reason[256]; /* why there is no cost; empty if there is */
};

static double estimate_us(const struct cost_request *request, const struct plan_report *report)
{
	uint64_t most = report->busiest_sent > report->busiest_received ? report->busiest_sent : report->busiest_received;

	return report->rounds * request->alpha_us + 8.0 * (double)most / (request->beta_gbit * 1e3);
}

/* -1 to go on, or the exit status. */
static int prepare(const struct cost_request *request, struct cost *cost, struct plan_work *work)
{
	const struct plan_request *asked = &request->plan;
	struct error err = {0};

	err.status = plan_tool_setup_init(&cost->setup, asked, cost->planner, &err);
	if (err.status == ESP_OK) {
		plan_tool_work_add(work, cost->planner, &cost->setup);
		return -1;
	}
	/* Without groups the others can still be compared. */
	bool left_out = !asked->planner && plan_planner_needs_groups(cost->planner) && !asked->groups && !asked->racks;
	if (!left_out)
		return plan_tool_complain(COMMAND, &err);
	snprintf(cost->reason, sizeof(cost->reason), "%s", err.text);
	return -1;
}

/* -1 to go on, or the exit status. */
static int find_cost(const struct cost_request *request, struct cost *cost, struct plan_work *work)
{
	struct error err = {0};
	struct plan *plan = NULL;

	if (cost->reason[0])
		return -1;
	err.status = plan_open(cost->planner, &cost->setup.spec, &plan, &err);
	if (err.status != ESP_OK)
		return plan_tool_complain(COMMAND, &err);
	cost->grouped = plan->group_count > 0;
	err.status = plan_tool_work_check(work, plan, &cost->report, NULL, &err);
	plan_close(plan);
	if (err.status != ESP_OK) {
		plan_tool_work_end(work);
		return complain(COMMAND ": %s: %s", plan_planner_name(cost->planner), err.text);
	}
	cost->time_us = estimate_us(request, &cost->report);
	return -1;
}

/* ---- for people ---- */

static void add_row(struct table *table, const struct cost *cost)
{
	const struct plan_report *report = &cost->report;
	char wire[NUMBER_BYTES_TEXT], busy[NUMBER_BYTES_TEXT], cross[NUMBER_BYTES_TEXT];

	table_cell(table, "%s", plan_planner_name(cost->planner));
	table_cell(table, "%u", report->rounds);
	table_cell(table, "%llu", (unsigned long long)report->messages);
	table_cell(table, "%s", number_format_bytes(report->wire_bytes, wire));
	table_cell(table, "%s", number_format_bytes(report->busiest_bytes, busy));
	table_cell(table, "%s", cost->grouped ? number_format_bytes(report->cross_bytes, cross) : "-");
	table_cell(table, "%.1f", cost->time_us);
}

/* Costs by time, the least first; equal ones stay as they are. */
static void sort(const struct cost *costs, size_t count, const struct cost *sorted[PLANNERS_MAX])
{
	for (size_t i = 0; i < count; i++) {
		size_t at = i;

		for (; at > 0 && sorted[at - 1]->time_us > costs[i].time_us; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = &costs[i];
	}
}

static enum esp_status print_table(const struct cost_request *request, const struct cost *costs, size_t count)
{
	const struct cost *sorted[PLANNERS_MAX];
	static const char *const headers[] = {"planner",      "rounds",         "messages",  "on the wire",
	                                      "busiest node", "between groups", "time (us)", NULL};
	struct table table;

	table_init(&table, headers);
	sort(costs, count, sorted);
	for (size_t i = 0; i < count; i++) {
		if (!sorted[i]->reason[0])
			add_row(&table, sorted[i]);
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	for (size_t i = 0; i < count; i++) {
		if (costs[i].reason[0])
			printf("\nleft out: %s\n", costs[i].reason);
	}
	printf(
		"\ntime = rounds x %g us + 8 x (most bytes that one node sends, or receives) / %g Gbit/s; the fastest first\n"
		"Links between racks are not modelled: where they are oversubscribed, compare the bytes between groups.\n",
		request->alpha_us, request->beta_gbit);
	return status;
}

/* An allreduce through a switch, against a ring. */
struct through {
	uint32_t nodes;
	double switch_us, ring_us, needs;
};

static struct through compare_switch(const struct cost_request *request)
{
	uint32_t nodes = (uint32_t)request->plan.nodes;
	double rate = request->beta_gbit * 1e9 / 8;

	return (struct through){
		.nodes = nodes,
		.switch_us = 1e6 * tune_through_switch(request->plan.bytes, nodes, rate, request->switch_links),
		.ring_us = 1e6 * tune_through_ring(request->plan.bytes, nodes, rate),
		.needs = tune_through_needs(nodes),
	};
}

/* In words: where a switch pays, and what is better where it does not. */
static void print_advice(bool pays)
{
	if (pays)
		printf("Start it there with 'espalier switch', and give jobs ESP_SWITCH=HOST:PORT. It sums integers,\n"
		       "and floats in fixed point (ESP_NUMERICS=fixed). Below 16 KiB, and where ranks share a host,\n"
		       "ordinary plans are faster.\n");
	else
		printf("A switch pays on a box with a much faster link, and on a router or DPU that all packets pass\n"
		       "anyway: there it carries no byte more. On a host as this one a ring, or the plan that the library\n"
		       "chooses, is the better choice; and the parameter hub ('espalier hub'), where one process is to\n"
		       "sum floats unrounded and take the optimizer's step.\n");
}

static void print_switch(const struct cost_request *request)
{
	struct through through = compare_switch(request);
	bool pays = through.switch_us < through.ring_us;

	printf("\nA switch on a host whose link is %g times as fast as a node's: %.1f us; a ring: %.1f us at best.\n",
	       request->switch_links, through.switch_us, through.ring_us);
	printf("It %s", pays ? "pays" : "does not pay");
	if (pays)
		printf(", %.2f times as fast as a ring", through.ring_us / through.switch_us);
	printf(". A node's link carries the buffer once each way, not %.2f times, but the switch's\n"
	       "link carries it %u times, which pays from %.1f times a node's rate on: N^2 / (2 (N - 1)) for N nodes.\n",
	       2.0 * (through.nodes - 1) / through.nodes, through.nodes, through.needs);
	print_advice(pays);
}

/* ---- for programs ---- */

static void put_cost(struct json *json, const struct cost *cost)
{
	struct plan grouping = {.group_count = cost->grouped};

	json_object_begin(json);
	json_put_string(json, "planner", plan_planner_name(cost->planner));
	json_put_string(json, "left_out", cost->reason[0] ? cost->reason : NULL);
	if (!cost->reason[0]) {
		plan_tool_json_report(json, &grouping, &cost->report);
		json_put_double(json, "time_us", cost->time_us);
	}
	json_object_end(json);
}

static void put_switch(struct json *json, const struct cost_request *request)
{
	struct through through = compare_switch(request);

	json_key(json, "switch");
	json_object_begin(json);
	json_put_double(json, "links", request->switch_links);
	json_put_double(json, "time_us", through.switch_us);
	json_put_double(json, "ring_us", through.ring_us);
	json_put_double(json, "needs_links", through.needs);
	json_put_bool(json, "pays", through.switch_us < through.ring_us);
	json_object_end(json);
}

static enum esp_status print_json(const struct cost_request *request, const struct cost *costs, size_t count)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "collective", plan_collective_name((enum plan_collective)request->plan.collective));
	json_put_u64(&json, "nodes", request->plan.nodes);
	json_put_double(&json, "alpha_us", request->alpha_us);
	json_put_double(&json, "beta_gbit", request->beta_gbit);
	json_key(&json, "planners");
	json_array_begin(&json);
	for (size_t i = 0; i < count; i++)
		put_cost(&json, &costs[i]);
	json_array_end(&json);
	if (request->switch_link)
		put_switch(&json, request);
	json_object_end(&json);
	return json_fini(&json);
}

/* ---- the command ---- */

/* Chooses the named planners, or all. -1 to go on, or the exit status. */
static int choose(const struct cost_request *request, struct cost *costs, size_t *out_count)
{
	struct error err = {0};
	size_t count = 0;

	if (request->plan.planner) {
		costs[count++].planner = plan_tool_find(request->plan.planner, &err);
		if (!costs[0].planner)
			return plan_tool_complain(COMMAND, &err);
	}
	if (plan_tool_request_check(&request->plan, &err) != ESP_OK)
		return plan_tool_complain(COMMAND, &err);
	/* Plans with hubs or switches take longer than their busiest node tells: espalier sim compares those. */
	for (unsigned i = 0; !request->plan.planner && plan_planner(i) && count < PLANNERS_MAX; i++) {
		if (!plan_planner_has_extra(plan_planner(i)))
			costs[count++].planner = plan_planner(i);
	}
	*out_count = count;
	return -1;
}

/* The same buffer for all, or there is nothing to compare. */
static void set_defaults(struct plan_request *plan)
{
	if (!plan->given[PLAN_OPTION_BYTES] && !plan->counts && plan->collective != PLAN_BARRIER) {
		plan->bytes = BUFFER_BYTES;
		plan->given[PLAN_OPTION_BYTES] = true;
	}
	if (!plan->chunks && !plan->counts)
		plan->chunks = plan->nodes;
}

/* -1 to go on, or the exit status. */
static int find_costs(struct cost_request *request, struct cost *costs, size_t count)
{
	struct plan_work work = {0};
	int exit_status = -1;

	for (size_t i = 0; exit_status < 0 && i < count; i++)
		exit_status = prepare(request, &costs[i], &work);
	if (exit_status < 0)
		plan_tool_work_announce(&work, COMMAND);
	for (size_t i = 0; exit_status < 0 && i < count; i++)
		exit_status = find_cost(request, &costs[i], &work);
	plan_tool_work_end(&work);
	for (size_t i = 0; i < count; i++)
		plan_tool_setup_fini(&costs[i].setup);
	return exit_status;
}

static int compare(struct cost_request *request)
{
	struct cost costs[PLANNERS_MAX] = {0};
	size_t count = 0;

	set_defaults(&request->plan);
	int exit_status = choose(request, costs, &count);
	if (exit_status < 0)
		exit_status = find_costs(request, costs, count);
	if (exit_status >= 0)
		return exit_status;
	enum esp_status printed = request->json ? print_json(request, costs, count) : print_table(request, costs, count);
	if (printed == ESP_OK && request->switch_link && !request->json)
		print_switch(request);
	return printed == ESP_OK ? EXIT_OK : complain(COMMAND ": cannot write to the standard output");
}

/* "4x", or "4". */
static bool read_links(struct cost_request *request)
{
	char *end;

	request->switch_links = strtod(request->switch_link, &end);
	bool is_number = end != request->switch_link && (*end == '\0' || (*end == 'x' && end[1] == '\0'));
	return is_number && request->switch_links > 0 && request->switch_links <= 1e6 && request->plan.nodes >= 2 &&
	       request->plan.collective == PLAN_ALLREDUCE && !request->plan.counts;
}

static bool reads_input_twice(const struct plan_request *plan)
{
	bool groups = plan->groups && strcmp(plan->groups, "-") == 0;
	bool counts = plan->counts && strcmp(plan->counts, "@-") == 0;

	return groups + counts > (plan->planner ? 1 : 0);
}

static int run(int argc, char **argv)
{
	struct cost_request request = {.alpha_us = 20, .beta_gbit = 10};
	struct option_spec options[PLAN_OPTION_MAX];
	size_t count = plan_tool_request_options(&request.plan, options);
	char about[PLAN_ABOUT_TEXT];

	options[PLAN_OPTION_BYTES].help = "size of the whole buffer (default 64M)";
	options[PLAN_OPTION_CHUNKS].help = "cut the buffer into at most K equal chunks (default: one per node)";
	options[count++] = plan_tool_request_planner(&request.plan);
	options[PLAN_OPTION_PLANNER].help = "only this planner (default: all that need nothing but the nodes)";
	options[count++] = (struct option_spec){
		"alpha", 'a', OPTION_DOUBLE, &request.alpha_us, "US", "microseconds that a round takes by itself (default 20)",
		0,       0,   NULL};
	options[count++] = (struct option_spec){
		"beta", 0, OPTION_DOUBLE, &request.beta_gbit, "GBIT", "Gbit/s of a node's link, each way (default 10)",
		0,      0, NULL};
	options[count++] = (struct option_spec){
		"switch-link", 0, OPTION_STRING, &request.switch_link, "Kx",
		"does an allreduce through a switch pay, whose link is K times as fast as a node's? 4x, or 4", 0, 0, NULL};
	options[count++] = (struct option_spec){"json", 0, OPTION_FLAG, &request.json, NULL, "print JSON", 0, 0, NULL};
	options[count] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"",
		plan_tool_about(
			"Compares planners by what the checker counts, the same buffer for all, and lists the fastest first.\n\n"
			"time = rounds x alpha + 8 x (most bytes that one node sends, or receives) / beta, which takes the\n"
			"network between the nodes to be no bottleneck: links between racks are not modelled.",
			about),
		options,
		0,
		0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (!(request.alpha_us >= 0) || !(request.beta_gbit > 0))
		return complain_usage(COMMAND ": --alpha must not be negative, and --beta must be above 0");
	if (!request.plan.nodes)
		return complain_usage(COMMAND ": how many nodes? Give --nodes N");
	if (request.switch_link && !read_links(&request))
		return complain_usage(COMMAND ": --switch-link is how many times as fast as a node's link, as in 4x; it is for "
		                      "an allreduce of 2 nodes or more");
	if (reads_input_twice(&request.plan))
		return complain_usage(COMMAND ": the standard input can be read only once, and there is more than one planner: "
		                      "give a file");
	return compare(&request);
}

const struct cli_command cli_plan_cost = {"cost", "compares planners: rounds, bytes, time", run};
