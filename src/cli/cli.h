/*
 * cli.h - the espalier command: its subcommands and their exit statuses.
 *
 * One file per subcommand. To add one: write src/cli/NAME.c with
 *
 *   const struct cli_command cli_NAME = {"NAME", "what it does, in a few words", run};
 *
 * declare it below, and name it in the table of main.c and in meson.build. run() is given argv[0] = the subcommand's
 * name, parses its options with report/options.h and returns a status of enum exit_code. Results go to stdout,
 * everything else to stderr.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "report/complain.h"

struct cli_command {
	const char *name;
	const char *summary; /* one line for espalier --help */
	int (*run)(int argc, char **argv);
	int depth; /* so many words behind it may name a command of its own: 1 for espalier plan make */
};
#define CLI_DEPTH_MAX 1

extern const struct cli_command cli_bench, cli_conf, cli_demo, cli_diagnose, cli_doctor, cli_hub, cli_lab, cli_plan,
	cli_probe, cli_run, cli_sched, cli_sim, cli_status, cli_switch, cli_topology, cli_trace;

#endif
