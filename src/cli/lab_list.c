/*
 * lab_list.c - espalier lab list: which labs there are.
 */
#include <stdio.h>

#include "cli/lab.h"
#include "report/json.h"
#include "report/options.h"

#define COMMAND "lab list"

static void print_name(void *json, const char *name)
{
	if (json)
		json_text(json, name);
	else
		puts(name);
}

static int run(int argc, char **argv)
{
	bool as_json = false;
	struct error err;
	struct json json;
	const struct option_spec options[] = {{"json", 0, OPTION_FLAG, &as_json, NULL, "print JSON"}, {0}};
	const struct options_usage usage = {COMMAND, "", "Prints the names of your labs, one in a line.", options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (as_json) {
		json_init(&json, stdout);
		json_array_begin(&json);
	}
	enum esp_status status = lab_client_list(print_name, as_json ? &json : NULL, &err);
	if (as_json) {
		json_array_end(&json);
		if (json_fini(&json) != ESP_OK)
			return EXIT_NO;
	}
	return status == ESP_OK ? EXIT_OK : lab_status_of(COMMAND, status, &err);
}

const struct cli_command cli_lab_list = {"list", "names the labs that there are", run};
