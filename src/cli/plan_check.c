/*
 * plan_check.c - espalier plan check: does a plan compute what it promises?
 */
#include "plan/check.h"

#include <stdio.h>

#include "base/number.h"
#include "cli/plan.h"
#include "tools/plan/plan_json.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_work.h"

#define COMMAND "plan check"

static const struct plan_fault nowhere = {UINT64_MAX, PLAN_NONE, PLAN_NONE};

static void print_summary(const struct plan *plan, const struct plan_report *report)
{
	char wire[NUMBER_BYTES_TEXT], busy[NUMBER_BYTES_TEXT], cross[NUMBER_BYTES_TEXT];

	printf("ok: %s %s, %u node%s, %llu chunk%s: %u round%s, %llu message%s, %s on the wire, busiest node %u moves %s",
	       plan_tool_origin(plan), plan_collective_name(plan->chunks.collective), plan->nodes, plural(plan->nodes),
	       (unsigned long long)report->chunks, plural(report->chunks), report->rounds, plural(report->rounds),
	       (unsigned long long)report->messages, plural(report->messages),
	       number_format_bytes(report->wire_bytes, wire), report->busiest_node,
	       number_format_bytes(report->busiest_bytes, busy));
	if (plan->group_count)
		printf(", %s between %u group%s", number_format_bytes(report->cross_bytes, cross), plan->group_count,
		       plural(plan->group_count));
	putchar('\n');
}

static void put_index(struct json *json, const char *key, bool known, uint64_t value)
{
	json_key(json, key);
	if (known)
		json_u64(json, value);
	else
		json_none(json);
}

static void put_fault(struct json *json, const struct plan_fault *fault, const struct error *err)
{
	json_put_string(json, "reason", err->text);
	put_index(json, "chunk", fault->chunk != UINT64_MAX, fault->chunk);
	put_index(json, "node", fault->node != PLAN_NONE, fault->node);
	put_index(json, "step", fault->step != PLAN_NONE, fault->step);
}

/* plan is NULL where the text holds none. */
static enum esp_status print_json(const struct plan *plan, enum esp_status checked, const struct plan_report *report,
                                  const struct plan_fault *fault, const struct error *err)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_bool(&json, "ok", checked == ESP_OK);
	if (plan)
		plan_tool_json_facts(&json, plan);
	if (plan && checked == ESP_OK)
		plan_tool_json_report(&json, plan, report);
	else
		put_fault(&json, fault, err);
	json_object_end(&json);
	return json_fini(&json);
}

static int check(const struct plan *plan, bool json, struct plan_work *work)
{
	struct plan_report report = {0};
	struct plan_fault fault = nowhere;
	struct error err = {0};
	enum esp_status checked = plan_tool_work_check(work, plan, &report, &fault, &err);

	plan_tool_work_end(work);
	if (checked != ESP_OK && checked != ESP_EPLAN)
		return complain(COMMAND ": %s", err.text);
	if (json) {
		if (print_json(plan, checked, &report, &fault, &err) != ESP_OK)
			return complain(COMMAND ": cannot write to the standard output");
		return checked == ESP_OK ? EXIT_OK : EXIT_NO;
	}
	if (checked != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	print_summary(plan, &report);
	return EXIT_OK;
}

/* A text that is no plan does not compute what it promises, either. */
static int say_malformed(const char *file, bool json, const struct error *malformed)
{
	const struct plan_report nothing = {0};

	if (!json)
		return complain(COMMAND ": %s: %s", file, malformed->text);
	if (print_json(NULL, ESP_EPARSE, &nothing, &nowhere, malformed) != ESP_OK)
		return complain(COMMAND ": cannot write to the standard output");
	return EXIT_NO;
}

static int run(int argc, char **argv)
{
	struct plan_request request;
	struct option_spec options[PLAN_OPTION_MAX];
	size_t count = plan_tool_request_options(&request, options);
	bool json = false;
	char about[PLAN_ABOUT_TEXT];

	options[count++] = plan_tool_request_planner(&request);
	options[count++] = (struct option_spec){"json", 0, OPTION_FLAG, &json, NULL, "print JSON", 0, 0, NULL};
	options[count] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"[FILE|-]",
		plan_tool_about(
			"Runs a plan symbolically: does each receiver of a chunk get every contribution exactly once,\n"
			"without waiting in circles or overwriting what is being sent? The plan comes from a file (- is\n"
			"the standard input), or from a planner, which needs no text.",
			about),
		options,
		0,
		1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct plan *plan;
	struct plan_work work = {0};
	struct error malformed = {0};
	const char *file = argc > 1 ? argv[1] : NULL;
	int exit_status = plan_tool_try(&request, COMMAND, file, &work, &plan, &malformed);
	if (exit_status >= 0)
		return exit_status;
	if (!plan)
		return say_malformed(file, json, &malformed);
	exit_status = check(plan, json, &work);
	plan_close(plan);
	return exit_status;
}

const struct cli_command cli_plan_check = {"check", "says whether a plan computes what it promises", run};
