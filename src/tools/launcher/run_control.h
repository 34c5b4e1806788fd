/*
 * run_control.h - the input of a remote shell: its script, and then a line for each signal, or wish.
 *
 * Never waits: what the pipe does not take yet is kept.
 */
#ifndef TOOLS_LAUNCHER_RUN_CONTROL_H
#define TOOLS_LAUNCHER_RUN_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_control {
	int fd;     /* writing end of the pipe; -1: closed */
	char *text; /* text[sent .. used-1] waits */
	size_t used, sent;
};
#define RUN_CONTROL_CLOSED ((struct run_control){.fd = -1})

/* Takes both fd and text. */
void run_control_open(struct run_control *control, int fd, char *text, size_t length);

/* The word for SIGHUP, SIGINT, SIGTERM or SIGKILL. False if nobody can be told. */
bool run_control_signal(struct run_control *control, int signal_number);

/* It shall look whether the rank is stopped there, and end it if the last so many seconds' looks found that too. False if nobody can be told. */
bool run_control_look(struct run_control *control, uint64_t seconds);

/* Writes what the pipe takes; closes if nobody reads it. */
void run_control_flush(struct run_control *control);

bool run_control_pending(const struct run_control *control);
void run_control_close(struct run_control *control);

#endif
