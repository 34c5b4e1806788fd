/*
 * complain.h - exit statuses of commands, and messages on stderr in the name of the espalier command.
 */
#ifndef REPORT_COMPLAIN_H
#define REPORT_COMPLAIN_H

#include <stdint.h>

#include "base/error.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_NO = 1,    /* the thing asked about is not so, or the work failed */
	EXIT_USAGE = 2, /* the command line makes no sense                     */
};

/* The program in whose name messages are printed: "espalier" unless main() says otherwise. Borrows the name. */
void complain_as(const char *name);
const char *complain_program(void);

/* "espalier: TEXT" on stderr, for every subcommand alike; returns EXIT_USAGE or EXIT_NO. */
int complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How a command ends that made a result and printed it: what went wrong is in err, or else it was the printing. Returns the exit status. */
int complain_end(const char *command, enum esp_status status, const struct error *err);
/* The same, of something that is no failure. */
void complain_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "s" where there is not exactly one: "%u node%s". */
const char *plural(uint64_t count);

#endif
