/*
 * lab_down.c - espalier lab down: ends a lab and all that runs in it.
 */
#include <stdio.h>

#include "cli/lab.h"
#include "report/json.h"
#include "report/options.h"

#define COMMAND "lab down"

static int run(int argc, char **argv)
{
	const char *name = CLIENT_DEFAULT;
	bool json = false;
	struct error err;
	uint32_t ended = 0;
	const struct option_spec options[] = {
		{"name", 0, OPTION_STRING, &name, "NAME", "of the lab (default lab)"},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Ends a lab. What still runs on its hosts gets SIGTERM, and SIGKILL after two seconds. Comes back when\n"
		"nothing of it is left.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	enum esp_status status = lab_client_down(name, &ended, &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	if (ended && !json)
		complain_note(COMMAND ": %u process%s still ran there and %s ended", ended, ended == 1 ? "" : "es",
		              ended == 1 ? "was" : "were");
	if (!json)
		return EXIT_OK;
	struct json out;
	json_init(&out, stdout);
	json_object_begin(&out);
	json_put_string(&out, "name", name);
	json_put_u64(&out, "ended_processes", ended);
	json_object_end(&out);
	return json_fini(&out) == ESP_OK ? EXIT_OK : EXIT_NO;
}

const struct cli_command cli_lab_down = {"down", "ends a lab, and all that runs in it", run};
