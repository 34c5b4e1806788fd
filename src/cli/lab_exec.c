/*
 * lab_exec.c - espalier lab exec: a command on a host or switch of the lab.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/lab.h"
#include "report/options.h"

#define COMMAND "lab exec"
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

static int run(int argc, char **argv)
{
	const char *name = CLIENT_DEFAULT;
	struct error err;
	const struct option_spec options[] = {{"name", 0, OPTION_STRING, &name, "NAME", "of the lab (default lab)"}, {0}};
	const struct options_usage usage = {
		COMMAND, "WHERE -- COMMAND [ARGUMENT]...",
		"Becomes a command on a host (node07, rack1/2) or a switch of the lab (rack1, core): its network, its host\n"
		"name, its shared memory. Files are those of this machine.\n\n"
		"  espalier lab exec node07 -- ping -c 1 node03\n"
		"  espalier lab exec rack0 -- tc -s class show dev up0",
		options, 1, -1};
	int command = 1, before;
	while (command < argc && strcmp(argv[command], "--") != 0)
		command++;
	before = command;
	char *const *words = argv + (command < argc ? command + 1 : argc);
	int parsed = options_parse(&usage, &before, argv);
	if (parsed >= 0)
		return parsed;
	if (before > 2 || !words[0])
		return complain_usage(COMMAND ": the command stands behind --: espalier lab exec %s -- COMMAND", argv[1]);
	enum esp_status status = lab_client_enter(name, argv[1], &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	execvp(words[0], words);
	int cause = errno;
	complain(COMMAND ": cannot run %s: %s", words[0], strerror(cause));
	return cause == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

const struct cli_command cli_lab_exec = {"exec", "becomes a command on one host or switch", run};
