/*
 * plan_check.c - espalier plan check: does a plan compute what it promises?
 */
#include "plan/check.h"

#include <stdio.h>

#include "base/number.h"
#include "cli/plan.h"
#include "cli/plan_json.h"
#include "cli/plan_options.h"

#define COMMAND "plan check"

static void print_summary(const struct plan *plan, const struct plan_report *report)
{
	char wire[NUMBER_BYTES_TEXT], busy[NUMBER_BYTES_TEXT], cross[NUMBER_BYTES_TEXT];

	printf("ok: %s %s, %u nodes, %llu chunks: %u rounds, %llu messages, %s on the wire, busiest node %u moves %s",
	       plan_origin(plan), plan_collective_name(plan->chunks.collective), plan->nodes,
	       (unsigned long long)report->chunks, report->rounds, (unsigned long long)report->messages,
	       number_format_bytes(report->wire_bytes, wire), report->busiest_node,
	       number_format_bytes(report->busiest_bytes, busy));
	if (plan->group_count)
		printf(", %s between %u groups", number_format_bytes(report->cross_bytes, cross), plan->group_count);
	putchar('\n');
}

static void put_index(struct json *json, const char *key, bool known, uint64_t value)
{
	json_key(json, key);
	if (known)
		json_u64(json, value);
	else
		json_null(json);
}

static void put_fault(struct json *json, const struct plan_fault *fault, const struct error *err)
{
	json_key(json, "reason");
	json_string(json, err->text);
	put_index(json, "chunk", fault->chunk != UINT64_MAX, fault->chunk);
	put_index(json, "node", fault->node != PLAN_NONE, fault->node);
	put_index(json, "step", fault->step != PLAN_NONE, fault->step);
}

static enum esp_status print_json(const struct plan *plan, enum esp_status checked, const struct plan_report *report,
                                  const struct plan_fault *fault, const struct error *err)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_key(&json, "ok");
	json_bool(&json, checked == ESP_OK);
	plan_json_facts(&json, plan);
	if (checked == ESP_OK)
		plan_json_report(&json, plan, report);
	else
		put_fault(&json, fault, err);
	json_object_end(&json);
	return json_fini(&json);
}

static int check(const struct plan *plan, bool json)
{
	struct plan_report report = {0};
	struct plan_fault fault = {UINT64_MAX, PLAN_NONE, PLAN_NONE};
	struct error err = {0};
	enum esp_status checked = plan_check(plan, NULL, &report, &fault, &err);

	if (checked != ESP_OK && checked != ESP_EPLAN)
		return cli_fail(COMMAND ": %s", err.text);
	if (json) {
		if (print_json(plan, checked, &report, &fault, &err) != ESP_OK)
			return cli_fail(COMMAND ": cannot write to the standard output");
		return checked == ESP_OK ? CLI_EXIT_OK : CLI_EXIT_NO;
	}
	if (checked != ESP_OK)
		return cli_fail(COMMAND ": %s", err.text);
	print_summary(plan, &report);
	return CLI_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct plan_request request;
	struct cli_option options[PLAN_OPTION_MAX];
	size_t count = plan_request_options(&request, options);
	bool json = false;
	char about[PLAN_ABOUT_TEXT];

	options[count++] = plan_request_planner(&request);
	options[count++] = (struct cli_option){"json", 0, CLI_FLAG, &json, NULL, "print JSON", 0, 0, NULL};
	options[count] = (struct cli_option){0};
	const struct cli_usage usage = {
		COMMAND,
		"[FILE|-]",
		plan_about("Runs a plan symbolically: does everybody who wants a chunk get every contribution exactly once,\n"
	               "without waiting in circles or overwriting what is being sent? The plan comes from a file (- is\n"
	               "the standard input), or from a planner, which needs no text.",
	               about),
		options,
		0,
		1};
	int parsed = cli_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct plan *plan;
	int exit_status = plan_from(&request, COMMAND, argc > 1 ? argv[1] : NULL, &plan);
	if (exit_status >= 0)
		return exit_status;
	exit_status = check(plan, json);
	plan_close(plan);
	return exit_status;
}

const struct cli_command cli_plan_check = {"check", "says whether a plan computes what it promises", run};
