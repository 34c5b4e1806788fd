/*
 * complain.h - exit statuses of commands, and messages on stderr in the name of the espalier command.
 */
#ifndef REPORT_COMPLAIN_H
#define REPORT_COMPLAIN_H

#include <stdint.h>

#include "base/error.h"

enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_NO = 1,    /* the thing asked about is not so, or the work failed */
	CLI_EXIT_USAGE = 2, /* the command line makes no sense                     */
};

/* The program in whose name messages are printed: "espalier" unless main() says otherwise. Borrows the name. */
void complain_as(const char *name);
const char *complain_program(void);

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
