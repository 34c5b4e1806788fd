/*
 * hub_status.c - espalier hub status: what the hubs of this machine do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/hub.h"
#include "cli/serving.h"
#include "hub/server/hub_status.h"
#include "node/observe/http_get.h"
#include "report/options.h"

#define COMMAND "hub status"
#define HUBS_MOST 256u

/* Prints the answer of one hub, behind the separator. A hub that does not answer leaves nothing on stdout. */
static bool show(uint16_t port, bool json, unsigned patience_ms, const char *separator)
{
	char name[HUB_STATUS_NAME], *body;
	size_t bytes;
	struct error err;

	hub_status_name((uint32_t)geteuid(), port, name);
	if (http_get_name(name, json ? "/status" : "/text", patience_ms, &body, &bytes, &err) != ESP_OK) {
		complain_note(COMMAND ": the hub at port %u: %s", port, err.text);
		return false;
	}
	fputs(separator, stdout);
	fwrite(body, 1, bytes, stdout);
	free(body);
	return true;
}

static int run(int argc, char **argv)
{
	bool json = false;
	uint64_t patience_ms = 2000;
	uint16_t ports[HUBS_MOST];
	bool all = true;
	uint32_t shown = 0;
	const struct option_spec options[] = {
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON: an array with an object for each hub"},
		{"timeout", 't', OPTION_U64, &patience_ms, "MS", "how long a hub may take to answer (default 2000)", .min = 1,
	     .max = 600000},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Asks the hubs that you run on this machine for their jobs: workers, versions, rates, memory, and what limits\n"
		"them. 'lane': a thread of the hub has no time left (more --lanes, or another hub); 'memory': no further job\n"
		"has room; 'link or workers': neither, so the network or the workers set the pace.",
		options,
		0,
		0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	uint32_t count = serving_ports("hub", ports, HUBS_MOST);
	if (count == 0 && !json)
		puts("No hub of yours runs on this machine.");
	if (json)
		puts("[");
	for (uint32_t i = 0; i < count; i++) {
		bool answers = show(ports[i], json, (unsigned)patience_ms, shown == 0 ? "" : json ? ",\n" : "\n");

		shown += answers;
		all &= answers;
	}
	if (json)
		puts("]");
	return all ? EXIT_OK : EXIT_NO;
}

const struct cli_command cli_hub_status = {"status", "what the hubs of this machine do", run};
