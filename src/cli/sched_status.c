/*
 * sched_status.c - espalier sched status: what the schedulers of this machine do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/sched.h"
#include "cli/serving.h"
#include "fabric/server/sched_server.h"
#include "node/observe/http_get.h"
#include "report/options.h"

#define COMMAND "sched status"
#define SCHEDULERS_MOST 256u

/* Prints the answer of one scheduler. */
static bool show(uint16_t port, bool json, unsigned patience_ms)
{
	char name[SCHED_SERVER_STATUS_NAME], *body;
	size_t bytes;
	struct error err;

	sched_server_status_name((uint32_t)geteuid(), port, name);
	if (http_get_name(name, json ? "/status" : "/text", patience_ms, &body, &bytes, &err) != ESP_OK) {
		complain_note(COMMAND ": the scheduler at port %u: %s", port, err.text);
		return false;
	}
	fwrite(body, 1, bytes, stdout);
	free(body);
	return true;
}

static int run(int argc, char **argv)
{
	uint16_t ports[SCHEDULERS_MOST];
	uint64_t patience_ms = 2000;
	bool json = false, all = true;
	const struct option_spec options[] = {
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON: an array with an object for each scheduler"},
		{"timeout", 't', OPTION_U64, &patience_ms, "MS", "how long a scheduler may take to answer (default 2000)",
	     .min = 1, .max = 600000},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Asks the schedulers that you run on this machine for their jobs: batches, updates that were applied and\n"
		"dropped, and why, their delays against the bound, and for each worker what its link is booked for and has\n"
		"achieved.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	uint32_t count = serving_ports("sched", ports, SCHEDULERS_MOST);
	if (count == 0 && !json)
		puts("No scheduler of yours runs on this machine.");
	if (json)
		puts("[");
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			puts(json ? "," : "");
		all &= show(ports[i], json, (unsigned)patience_ms);
	}
	if (json)
		puts("]");
	return all ? EXIT_OK : EXIT_NO;
}

const struct cli_command cli_sched_status = {"status", "what the schedulers of this machine do", run};
