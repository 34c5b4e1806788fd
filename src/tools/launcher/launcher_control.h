/*
 * launcher_control.h - the input of a remote shell: its script, then a line for each signal or request.
 *
 * Never blocks: bytes that the pipe does not take yet are kept.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_CONTROL_H
#define TOOLS_LAUNCHER_LAUNCHER_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_control {
	int fd;     /* writing end of the pipe; -1: closed */
	char *text; /* text[sent .. used-1] is not written yet */
	size_t used, sent;
};
#define RUN_CONTROL_CLOSED ((struct run_control){.fd = -1})

/* Takes both fd and text. */
void launcher_control_open(struct run_control *control, int fd, char *text, size_t length);

/* Sends the name of SIGHUP, SIGINT, SIGTERM or SIGKILL. False if the shell is gone. */
bool launcher_control_signal(struct run_control *control, int signal_number);

/*
 * Asks the shell to check whether the rank is stopped, and to kill it if the checks of so many seconds in a row
 * found that. False if the shell is gone.
 */
bool launcher_control_look(struct run_control *control, uint64_t seconds);

/* Writes as much as the pipe takes; closes it if the shell is gone. */
void launcher_control_flush(struct run_control *control);

bool launcher_control_pending(const struct run_control *control);
void launcher_control_close(struct run_control *control);

#endif
