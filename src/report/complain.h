/*
 * complain.h - exit statuses of commands, and messages on stderr in the name of the program. Main thread.
 */
#ifndef REPORT_COMPLAIN_H
#define REPORT_COMPLAIN_H

#include <stdint.h>

#include "base/error.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_NO = 1,    /* the answer is no, or the work failed */
	EXIT_USAGE = 2, /* the command line makes no sense */
};

/* Sets the program in whose name messages are printed; "espalier" if it is not called. Borrows the name. */
void complain_as(const char *name);
const char *complain_program(void);

/* Print "espalier: TEXT" on stderr. Return EXIT_USAGE and EXIT_NO. */
int complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * The end of a command that made a result and printed it. If status is a failure, prints err, or if err is empty that
 * stdout could not be written. Returns the exit status.
 */
int complain_end(const char *command, enum esp_status status, const struct error *err);
/* Prints like complain(), about something that is no failure. */
void complain_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "s" unless count is 1: "%u node%s". */
const char *plural(uint64_t count);

#endif
