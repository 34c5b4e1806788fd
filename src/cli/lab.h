/*
 * lab.h - the subcommands of espalier lab, and what they share.
 */
#ifndef CLI_LAB_H
#define CLI_LAB_H

#include <stdbool.h>

#include "cli/cli.h"
#include "tools/lab/client.h"

extern const struct cli_command cli_lab_check, cli_lab_down, cli_lab_exec, cli_lab_list, cli_lab_run, cli_lab_set,
	cli_lab_status, cli_lab_topology, cli_lab_up;

/* Says what err says in the name of a subcommand. Returns the exit status: usage for what was asked wrongly. */
int lab_status_of(const char *command, enum esp_status status, const struct error *err);

#endif
