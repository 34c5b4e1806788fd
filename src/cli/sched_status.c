/*
 * sched_status.c - espalier sched status: what the schedulers of this machine do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/outfile.h"
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

/* ---- the picture ---- */

static enum esp_status get_picture(uint16_t port, unsigned patience_ms, const char *path, struct error *err)
{
	char name[SCHED_SERVER_STATUS_NAME], *body;
	struct outfile out;
	size_t bytes;

	sched_server_status_name((uint32_t)geteuid(), port, name);
	enum esp_status status = http_get_name(name, "/svg", patience_ms, &body, &bytes, err);
	if (status != ESP_OK)
		return status;
	status = outfile_open(&out, path, err);
	if (status == ESP_OK) {
		fwrite(body, 1, bytes, out.file);
		status = outfile_commit(&out, err);
	}
	free(body);
	return status;
}

static int draw(const uint16_t *ports, uint32_t count, uint16_t port, unsigned patience_ms, const char *path)
{
	struct error err;

	if (count == 0)
		return complain(COMMAND ": no scheduler of yours runs on this machine");
	if (count > 1 && port == 0)
		return complain_usage(COMMAND ": %u schedulers run on this machine: --svg needs --port", count);
	if (get_picture(port ? port : ports[0], patience_ms, path, &err) != ESP_OK)
		return complain(COMMAND ": the scheduler at port %u: %s", port ? port : ports[0], err.text);
	return EXIT_OK;
}

static int show_all(const uint16_t *ports, uint32_t count, bool json, unsigned patience_ms)
{
	bool all = true;

	if (count == 0 && !json)
		puts("No scheduler of yours runs on this machine.");
	if (json)
		puts("[");
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			puts(json ? "," : "");
		all &= show(ports[i], json, patience_ms);
	}
	if (json)
		puts("]");
	return all ? EXIT_OK : EXIT_NO;
}

static int run(int argc, char **argv)
{
	uint16_t ports[SCHEDULERS_MOST];
	uint64_t patience_ms = 2000, port = 0;
	const char *svg = NULL;
	bool json = false;
	const struct option_spec options[] = {
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON: an array with an object for each scheduler"},
		{"svg", 0, OPTION_STRING, &svg, "FILE", "draw the latest batch in place of that"},
		{"port", 'p', OPTION_U64, &port, "PORT", "only the scheduler that listens there", .min = 1, .max = UINT16_MAX},
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
	if (svg && json)
		return complain_usage(COMMAND ": --svg and --json go not together");
	uint32_t count = serving_ports("sched", ports, SCHEDULERS_MOST);
	if (svg)
		return draw(ports, count, (uint16_t)port, (unsigned)patience_ms, svg);
	if (port > 0) {
		ports[0] = (uint16_t)port;
		count = 1;
	}
	return show_all(ports, count, json, (unsigned)patience_ms);
}

const struct cli_command cli_sched_status = {"status", "what the schedulers of this machine do", run};
