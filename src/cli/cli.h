/*
 * cli.h - the espalier command: its subcommands and their exit statuses.
 *
 * One file per subcommand. To add one: write src/cli/NAME.c with
 *
 *   const struct cli_command cli_NAME = {"NAME", "what it does, in a few words", run};
 *
 * declare it below, and name it in the table of main.c and in meson.build. run() is given
 * argv[0] = the subcommand's name, parses its options with cli/options.h and returns a
 * CLI_EXIT status. What was asked for goes to stdout, everything else to stderr.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdint.h>

#include "base/error.h"

enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_NO = 1,    /* the thing asked about is not so, or the work failed */
	CLI_EXIT_USAGE = 2, /* the command line makes no sense                     */
};

struct cli_command {
	const char *name;
	const char *summary; /* one line for espalier --help */
	int (*run)(int argc, char **argv);
	int depth; /* so many words behind it may name a command of its own: 1 for espalier plan make */
};
#define CLI_DEPTH_MAX 2

extern const struct cli_command cli_bench, cli_conf, cli_demo, cli_diagnose, cli_doctor, cli_lab, cli_plan, cli_probe, cli_run, cli_sim, cli_status, cli_topology,
	cli_trace;

/* "espalier: TEXT" on stderr, for every subcommand alike; returns CLI_EXIT_USAGE or CLI_EXIT_NO. */
int cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How a command ends that made a result and printed it: what went wrong is in err, or else it was the printing. Returns the exit status. */
int cli_end(const char *command, enum esp_status status, const struct error *err);
/* The same, of something that is no failure. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "s" where there is not exactly one: "%u node%s". */
const char *cli_plural(uint64_t count);

#endif
