/*
 * switch_status.c - espalier switch status and drain: the switches that the user runs on this machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/serving.h"
#include "cli/switch.h"
#include "node/observe/http_get.h"
#include "report/options.h"
#include "switch/server/switch_server.h"

#define SWITCHES_MOST 256u

/* Prints the answer of one switch. */
static bool ask(const char *command, uint16_t port, const char *path, unsigned patience_ms, const char *before)
{
	char name[SWITCH_STATUS_NAME], *body;
	size_t bytes;
	struct error err;

	switch_status_name((uint32_t)geteuid(), port, name);
	if (http_get_name(name, path, patience_ms, &body, &bytes, &err) != ESP_OK) {
		complain_note("%s: the switch at port %u: %s", command, port, err.text);
		return false;
	}
	fputs(before, stdout);
	fwrite(body, 1, bytes, stdout);
	free(body);
	return true;
}

static int run_status(int argc, char **argv)
{
	uint16_t ports[SWITCHES_MOST];
	uint64_t patience_ms = 2000;
	bool json = false, metrics = false, all = true;
	const struct option_spec options[] = {
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON: an array with an object for each switch"},
		{"metrics", 0, OPTION_FLAG, &metrics, NULL, "print what Prometheus is told"},
		{"timeout", 't', OPTION_U64, &patience_ms, "MS", "how long a switch may take to answer (default 2000)",
	     .min = 1, .max = 600000},
		{0},
	};
	const struct options_usage usage = {
		"switch status", "",
		"Asks the switches that you run on this machine: flows and their members, aggregators in use, contributions\n"
		"that were added (hits), that found their aggregator taken (collisions), that came again, ages and rates.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	uint32_t count = serving_ports("switch", ports, SWITCHES_MOST);
	if (count == 0 && !json)
		puts("No switch of yours runs on this machine.");
	if (json)
		puts("[");
	const char *path = json ? "/status" : metrics ? "/metrics" : "/text", *before = "";
	for (uint32_t i = 0; i < count; i++) {
		/* one that ends just now does not answer, and leaves no gap */
		bool answers = ask("switch status", ports[i], path, (unsigned)patience_ms, before);
		if (answers)
			before = json ? ",\n" : "\n";
		all &= answers;
	}
	if (json)
		puts("]");
	return all ? EXIT_OK : EXIT_NO;
}

const struct cli_command cli_switch_status = {"status", "what the switches of this machine do", run_status};

static int run_drain(int argc, char **argv)
{
	uint16_t ports[SWITCHES_MOST];
	uint64_t wanted = 0;
	bool undo = false, all = true;
	uint32_t asked = 0;
	const struct option_spec options[] = {
		{"port", 'p', OPTION_U64, &wanted, "PORT", "the switch at this port (default: all that you run here)", .min = 1,
	     .max = 65535},
		{"undo", 0, OPTION_FLAG, &undo, NULL, "the switch helps again"},
		{0},
	};
	const struct options_usage usage = {
		"switch drain", "",
		"Tells members of jobs to go on without the switch, which then can be ended while jobs run. It takes no new\n"
		"sums from then on; members hear of it within a second.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	uint32_t count = serving_ports("switch", ports, SWITCHES_MOST);
	for (uint32_t i = 0; i < count; i++) {
		if (wanted && ports[i] != wanted)
			continue;
		all &= ask("switch drain", ports[i], undo ? "/undrain" : "/drain", 2000, "");
		asked++;
	}
	if (asked == 0)
		return complain("switch drain: no switch of yours runs on this machine%s", wanted ? " at this port" : "");
	return all ? EXIT_OK : EXIT_NO;
}

const struct cli_command cli_switch_drain = {"drain", "takes a switch out while jobs run", run_drain};
