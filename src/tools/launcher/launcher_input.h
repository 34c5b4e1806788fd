/*
 * launcher_input.h - forwards the terminal's input to rank 0.
 *
 * A rank is in a process group of its own, and the kernel stops a process that reads the terminal from a
 * background group. So espalier run, in the foreground group, reads it and forwards it through a pipe. Only for
 * terminals: rank 0 inherits a file or a pipe itself. Never blocks.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_INPUT_H
#define TOOLS_LAUNCHER_LAUNCHER_INPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct run_input {
	bool open;
	int from; /* the terminal */
	int to;   /* writing end of rank 0's pipe */
	size_t used, sent;
	char text[4096]; /* in transit: text[sent .. used-1] */
};

/* The descriptor for rank 0's standard input; the caller closes it if it is not 0. -1 and errno on failure. */
int launcher_input_open(struct run_input *input);

/* Fills in what to poll, and moves bytes after the poll. */
#define RUN_INPUT_POLLS 2
void launcher_input_poll(const struct run_input *input, struct pollfd polls[RUN_INPUT_POLLS]);
void launcher_input_move(struct run_input *input, const struct pollfd polls[RUN_INPUT_POLLS]);

void launcher_input_close(struct run_input *input);

#endif
