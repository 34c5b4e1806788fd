/*
 * run.c - espalier run: starts the ranks of a job, here or on other hosts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/infile.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "report/options.h"
#include "tools/launcher/launcher_given.h"
#include "tools/launcher/launcher_shell.h"

#define COMMAND "run"
#define GO_ON RUN_GO_ON

/* The options as they were given. */
struct given {
	struct run_given common;
	uint64_t ranks, port; /* 0: not given */
	const char *hosts, *hostfile, *leader, *rsh;
};

static int status_of(const struct given *given, enum esp_status status, const struct error *err)
{
	return launcher_given_status(given->common.command, status, err);
}

/* ---- the command line ---- */

static int parse(struct given *given, struct run_request *request, int argc, char **argv)
{
	struct option_spec options[6 + RUN_GIVEN_OPTIONS + 1] = {
		{"ranks", 'n', OPTION_U64, &given->ranks, "N", "number of ranks", .min = 1, .max = RUN_RANKS_MAX},
		{"hosts", 0, OPTION_STRING, &given->hosts, "LIST", "hosts and their numbers of ranks, as in a:4,user@b:4"},
		{"hostfile", 0, OPTION_STRING, &given->hostfile, "FILE", "the same from a file, a line for each"},
		{"leader", 0, OPTION_STRING, &given->leader, "HOST:PORT", "where rank 0 can be reached"},
		{"port", 0, OPTION_U64, &given->port, "PORT", "port of rank 0 (default: a free one)", .min = 1,
	     .max = UINT16_MAX},
		{"rsh", 0, OPTION_STRING, &given->rsh, "COMMAND",
	     "remote shell (default: ssh, which must not ask for a password)"},
	};
	const struct options_usage usage = {
		COMMAND,
		"-- COMMAND [ARGUMENT]...",
		"Starts the ranks of a job, here or on other hosts, and waits for all of them. Each is told in its\n"
		"environment its rank and how to find the others. When one fails, the others are ended (see --lose). SIGINT\n"
		"and SIGTERM go to all ranks; those that stay get SIGKILL when --grace is over, or at a second Ctrl-C.\n\n"
		"  espalier run -n 8 -- ./train --epochs 3\n"
		"  espalier run --hosts a:4,b:4 -- python3 train.py\n"
		"  espalier run -n 2 --env ESP_LOG=info --output logs -- ./train\n\n"
		"Returns 0 if all ranks do, or all but --lose, otherwise what the first one returned that failed, 128 and\n"
		"the signal if it was killed; 124 after --timeout, 127 if there is no such command, 126 if it cannot be run.",
		options,
		0,
		-1};
	launcher_given_options(&given->common, options + 6);
	return launcher_given_parse(&usage, argc, argv, request);
}

/* ---- from options to a request ---- */

enum esp_status run_hosts_given(struct run_hosts *hosts, const char *list, const char *path, struct error *err)
{
	struct infile file;
	if (list)
		return launcher_hosts_parse(hosts, list, err);
	enum esp_status status = infile_open(&file, path, err);
	if (status != ESP_OK)
		return status;
	status = launcher_hosts_decode(hosts, file.text, file.length, path, err);
	infile_close(&file);
	return status;
}

static int take_ranks(const struct given *given, struct run_request *request)
{
	struct error err;
	enum esp_status status = ESP_OK;
	if (given->hosts && given->hostfile)
		return complain_usage(COMMAND ": --hosts and --hostfile say the same thing; leave out one");
	if (!given->ranks && !given->hosts && !given->hostfile)
		return complain_usage(COMMAND ": how many ranks? -n N starts them here, --hosts or --hostfile on other hosts");
	request->size = (uint32_t)given->ranks;
	if (!given->hosts && !given->hostfile)
		return GO_ON;
	status = run_hosts_given(&request->hosts, given->hosts, given->hostfile, &err);
	if (status == ESP_OK)
		status = launcher_hosts_settle(&request->hosts, request->size, &err);
	if (status != ESP_OK)
		return status_of(given, status, &err);
	request->size = request->hosts.ranks;
	return GO_ON;
}

static int take_leader(const struct given *given, struct run_request *request)
{
	struct error err;
	uint16_t port = (uint16_t)given->port;
	enum esp_status status = ESP_OK;
	if (given->leader && given->port)
		return complain_usage(COMMAND ": --leader has a port already; leave out --port");
	if (given->leader) {
		status = launcher_group_check_leader(given->leader, &err);
		snprintf(request->leader, sizeof(request->leader), "%s", given->leader);
	} else if (request->hosts.count) {
		port = port ? port : launcher_group_high_port();
		launcher_group_leader(launcher_host_address(&request->hosts.list[0]), port, request->leader);
	} else {
		status = launcher_group_local_port(port, &port, &request->held_port, &err);
		launcher_group_leader("127.0.0.1", port, request->leader);
	}
	return status == ESP_OK ? GO_ON : status_of(given, status, &err);
}

static int take_rsh(const struct given *given, struct run_request *request)
{
	struct error err;
	if (given->rsh && !request->hosts.count)
		return complain_usage(COMMAND ": --rsh means nothing without --hosts or --hostfile");
	request->here = getcwd(NULL, 0);
	if (!request->here)
		return complain(COMMAND ": cannot tell the current folder: %s", strerror(errno));
	enum esp_status status = launcher_shell_words(given->rsh, &request->rsh, &request->rsh_host, &err);
	return status == ESP_OK ? GO_ON : status_of(given, status, &err);
}

static int understand(const struct given *given, struct run_request *request)
{
	int status = take_ranks(given, request);
	if (status == GO_ON)
		status = take_leader(given, request);
	if (status == GO_ON)
		status = take_rsh(given, request);
	return status == GO_ON ? launcher_given_understand(&given->common, request) : status;
}

int run_as(const char *name, int argc, char **argv, const struct run_watch *watch)
{
	struct given given = {.common = {.command = name, .grace = 5}};
	struct run_request request = {
		.is_inner = strcmp(name, COMMAND) != 0, .watch = watch, .held_port = -1, .held_master = -1};
	int status = parse(&given, &request, argc, argv);
	if (status == GO_ON)
		status = understand(&given, &request);
	if (status == GO_ON)
		status = launcher_given_run(&given.common, &request);
	launcher_given_forget(&request);
	return status;
}

static int run(int argc, char **argv)
{
	return run_as(COMMAND, argc, argv, NULL);
}

const struct cli_command cli_run = {"run", "starts the ranks of a job, here or on other hosts", run};
