/* lab_status.c - espalier lab status: which host is where, and its settings. */
#include <stdio.h>

#include "cli/lab.h"
#include "report/options.h"
#include "tools/lab/lab_report.h"

#define COMMAND "lab status"

static int print(const struct lab *lab, bool as_json)
{
	struct json json;
	if (!as_json) {
		lab_report_sentence(lab);
		return lab_report_links(lab, NULL) == ESP_OK ? EXIT_OK : EXIT_NO;
	}
	json_init(&json, stdout);
	json_object_begin(&json);
	lab_json_config(&json, lab);
	enum esp_status status = lab_report_links(lab, &json);
	json_object_end(&json);
	return json_fini(&json) == ESP_OK && status == ESP_OK ? EXIT_OK : EXIT_NO;
}

static int run(int argc, char **argv)
{
	const char *name = CLIENT_DEFAULT;
	const struct lab *lab;
	bool json = false;
	struct error err;
	const struct option_spec options[] = {
		{"name", 0, OPTION_STRING, &name, "NAME", "of the lab (default lab)"},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Shows the links of a lab: whose they are, where that is, their address and rate, what has been set on them,\n"
		"and what their relays have done. Names and places stand beside each other here and in espalier lab topology.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	enum esp_status status = lab_client_map(name, &lab, &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	int exit_status = print(lab, json);
	lab_client_unmap(lab);
	return exit_status;
}

const struct cli_command cli_lab_status = {"status", "shows hosts, links and what is set on them", run};
