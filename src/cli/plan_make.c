/*
 * plan_make.c - espalier plan make: a plan as text.
 */
#include <stdio.h>

#include "cli/plan.h"
#include "plan/text.h"
#include "tools/plan/plan_json.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_work.h"

#define COMMAND "plan make"

static int print(const struct plan *plan, bool json)
{
	static const struct plan_filter everything = {PLAN_NONE, UINT64_MAX};
	struct error err = {0};
	enum esp_status status = json ? plan_tool_json_print(plan, &everything, &err) : plan_print(plan, stdout, &err);

	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": %s", err.text);
}

static int run(int argc, char **argv)
{
	struct plan_request request;
	struct option_spec options[PLAN_OPTION_MAX];
	size_t count = plan_tool_request_options(&request, options);
	bool json = false;
	char about[PLAN_ABOUT_TEXT];

	options[count++] = (struct option_spec){"json", 0, OPTION_FLAG, &json, NULL, "print JSON", 0, 0, NULL};
	options[count] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"PLANNER",
		plan_tool_about("Prints the plan that PLANNER makes, as text that espalier plan check reads.", about),
		options,
		1,
		1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct plan *plan;
	struct plan_work work = {0};
	request.planner = argv[1];
	int exit_status = plan_tool_from(&request, COMMAND, NULL, &work, &plan);
	if (exit_status >= 0)
		return exit_status;
	exit_status = print(plan, json);
	plan_close(plan);
	return exit_status;
}

const struct cli_command cli_plan_make = {"make", "prints the plan of a planner as text", run};
