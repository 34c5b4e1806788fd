/*
 * hub_create.c - espalier hub create: makes a job on a hub, and a ticket for its workers.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/hub.h"
#include "hub/control/ticket.h"
#include "hub/layout.h"
#include "hub/store/store_lane.h"
#include "math/optimizer.h"
#include "report/options.h"

#define COMMAND "hub create"

enum mode {
	MODE_ROUNDS,
	MODE_ASYNC,
};

/* At one of the job's hubs. The first chooses the number of the job; all have the same key file, and give the same key.
 */
static enum esp_status create_at(uint32_t number, const char *key_file, uint64_t timeout,
                                 struct hub_msg_create create, struct ticket *ticket, struct error *err)
{
	struct hub_msg msg = {.type = HUB_MSG_CREATE};
	struct msg_socket socket;
	uint64_t until_ns;

	create.own = (uint16_t)number;
	create.job = ticket->job;
	msg.create = create;
	enum esp_status status = cli_hub_dial(&ticket->hubs[number], key_file, timeout, &socket, &until_ns, err);
	if (status != ESP_OK)
		return status;
	status = msg_socket_put(&socket, &msg, until_ns, err);
	if (status == ESP_OK)
		status = msg_socket_take(&socket, HUB_MSG_TICKET, until_ns, &msg, err);
	msg_socket_close(&socket);
	if (status != ESP_OK)
		return status;
	memcpy(ticket->key, msg.ticket.key, sizeof(ticket->key));
	ticket->job = msg.ticket.job;
	explicit_bzero(&msg, sizeof(msg));
	return ESP_OK;
}

/* The hubs that have the job already forget it. */
static void undo(const struct ticket *ticket, uint32_t count, const char *key_file, uint64_t timeout)
{
	struct error ignored;

	for (uint32_t i = 0; i < count; i++)
		(void)!cli_hub_remove_at(&ticket->hubs[i], key_file, timeout, ticket->name, &ignored);
}

static enum esp_status create(const char *key_file, uint64_t timeout, const struct hub_msg_create *create,
                              struct ticket *ticket, struct error *err)
{
	enum esp_status status = ESP_OK;
	char hub[ADDRESS_TEXT];
	struct error why;

	memcpy(ticket->name, create->name, sizeof(ticket->name));
	ticket->workers = create->workers;
	for (uint32_t i = 0; status == ESP_OK && i < ticket->hub_count; i++) {
		status = create_at(i, key_file, timeout, *create, ticket, &why);
		if (status == ESP_OK)
			continue;
		undo(ticket, i, key_file, timeout);
		if (ticket->hub_count > 1)
			error_set(err, status, "%.100s: %.150s", address_format(&ticket->hubs[i], hub), why.text);
		else
			*err = why;
	}
	return status;
}

/* Before the job is made: without its ticket it would be of no use. */
static enum esp_status check_folder(const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1), path);
	if (access(folder, W_OK | X_OK) == 0)
		return ESP_OK;
	return error_set(err, ESP_EIO, "the ticket %s cannot be written, so no job was made: %s", path, strerror(errno));
}

static int run(int argc, char **argv)
{
	const char *hub = HUB_DEFAULT, *key_file = HUB_KEY_FILE, *optimizer_text = NULL, *ticket_file = NULL;
	uint64_t workers = 0, chunk = LAYOUT_CHUNK_BYTES, weight = 1, timeout = 10;
	uint64_t delay_bound = 0;
	const char *scheduler = NULL;
	int mode = MODE_ROUNDS;
	static const char *const modes[] = {"rounds", "async", NULL};
	bool replace = false;
	struct hub_msg_create msg = {0};
	struct optimizer optimizer;
	struct ticket ticket = {0};
	struct error err;
	char own_file[HUB_JOB_NAME + 8];
	const struct option_spec options[] = {
		{"hub", 0, OPTION_STRING, &hub, "HOST:PORT[,...]",
	     "where the hub listens, as workers reach it (default " HUB_DEFAULT "); several share the job's chunks out"},
		{"key-file", 'k', OPTION_STRING, &key_file, "FILE",
	     "the hub's key (default hub.key); the hubs of a job have the same"},
		{"workers", 'n', OPTION_U64, &workers, "N", "workers of the job, 1 to 64", .min = 1, .max = STORE_WORKERS_MOST},
		{"optimizer", 'o', OPTION_STRING, &optimizer_text, "TEXT",
	     "\"sgd lr=0.1 momentum=0.9\", \"adam lr=1e-3\", \"adamw ...\", \"avg\""},
		{"ticket-file", 't', OPTION_STRING, &ticket_file, "FILE",
	     "written for the workers, with mode 0600 (default NAME.ticket)"},
		{"chunk", 0, OPTION_BYTES, &chunk, "BYTES", "of weights that are summed at a time (default 32K)",
	     .min = LAYOUT_CHUNK_LEAST, .max = LAYOUT_CHUNK_MOST},
		{"weight", 0, OPTION_U64, &weight, "N", "share of the hub's lanes beside other jobs (default 1)", .min = 1,
	     .max = 1000},
		{"mode", 0, OPTION_CHOICE, &mode, "MODE",
	     "rounds: all workers' gradients together (default); async: each update by itself", .choices = modes},
		{"delay-bound", 0, OPTION_U64, &delay_bound, "T",
	     "async: version after applying minus version computed from is at most T; a lone worker has 1", .min = 1,
	     .max = UINT16_MAX},
		{"sched", 0, OPTION_STRING, &scheduler, "HOST:PORT",
	     "async: the scheduler of the updates, as workers reach it"},
		{"replace", 0, OPTION_FLAG, &replace, NULL, "in place of a job of this name: its tickets become void"},
		{"timeout", 0, OPTION_U64, &timeout, "SECONDS", "how long the hub may take to answer (default 10)", .min = 1,
	     .max = 3600},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "NAME",
		"Creates a job on a parameter hub and writes its ticket: address, number and key of the job. A worker finds\n"
		"the ticket by ESP_HUB_TICKET. The hub takes memory for the model when the workers have come.",
		options, 1, 1};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	if (!hub_msg_name_is_good(argv[1]))
		return complain_usage(
			COMMAND
			": a job's name has 1 to 63 letters, digits, '-', '_' and '.', and begins with none of '-' and '.'");
	if (workers == 0 || !optimizer_text)
		return complain_usage(COMMAND ": %s is missing: see espalier " COMMAND " --help",
		                      workers == 0 ? "--workers" : "--optimizer");
	if (chunk % 64 != 0)
		return complain_usage(COMMAND ": --chunk is a multiple of 64 bytes");
	if ((mode == MODE_ASYNC) != (delay_bound > 0))
		return complain_usage(COMMAND ": --mode async and --delay-bound T belong together");
	if (scheduler && mode != MODE_ASYNC)
		return complain_usage(COMMAND ": --sched is for --mode async");
	if (optimizer_parse(optimizer_text, &optimizer, &err) != ESP_OK)
		return complain_usage(COMMAND ": --optimizer: %s", err.text);
	snprintf(msg.name, sizeof(msg.name), "%s", argv[1]);
	msg.workers = (uint32_t)workers;
	msg.chunk_bytes = (uint32_t)chunk;
	msg.weight = (uint32_t)weight;
	msg.replaces = replace;
	msg.delay_bound = (uint16_t)delay_bound;
	optimizer_encode(&optimizer, msg.optimizer);
	snprintf(own_file, sizeof(own_file), "%s.ticket", argv[1]);
	if (!ticket_file)
		ticket_file = own_file;
	if (ticket_parse_hubs(hub, "--hub", &ticket, &err) != ESP_OK)
		return complain_usage(COMMAND ": %s", err.text);
	if (ticket.hub_count > 1 && mode == MODE_ASYNC)
		return complain_usage(COMMAND ": --mode async is for a job with one hub: its versions are of the whole model");
	if (scheduler && address_parse(scheduler, "--sched", &ticket.scheduler, &err) != ESP_OK)
		return complain_usage(COMMAND ": %s", err.text);
	ticket.has_scheduler = scheduler != NULL;
	msg.hubs = (uint16_t)ticket.hub_count;
	enum esp_status status = check_folder(ticket_file, &err);
	if (status == ESP_OK)
		status = create(key_file, timeout, &msg, &ticket, &err);
	if (status == ESP_OK)
		status = ticket_write(&ticket, ticket_file, &err);
	explicit_bzero(&ticket, sizeof(ticket));
	if (status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	printf("job %s for %u workers: ticket %s\n", msg.name, msg.workers, ticket_file);
	return EXIT_OK;
}

const struct cli_command cli_hub_create = {"create", "makes a job, and a ticket for its workers", run};
