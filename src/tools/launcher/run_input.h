/*
 * run_input.h - what is typed at the terminal, for rank 0.
 *
 * A rank is in a process group of its own, and the terminal stops whoever reads it from another
 * group than that in front. So espalier run, which is in front, reads it and hands it on through a
 * pipe. Only for terminals: a file or a pipe is given to rank 0 itself.
 */
#ifndef TOOLS_LAUNCHER_RUN_INPUT_H
#define TOOLS_LAUNCHER_RUN_INPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct run_input {
	bool open;
	int from; /* the terminal */
	int to;   /* writing end of rank 0's pipe */
	size_t used, sent;
	char text[4096]; /* what is on its way: text[sent .. used-1] */
};

/*
 * The descriptor that rank 0 gets as its standard input; the caller closes it if it is not 0.
 * -1 and errno if there is none.
 */
int run_input_open(struct run_input *input);

/* What to wait for, and what to do when it has come. */
#define RUN_INPUT_POLLS 2
void run_input_poll(const struct run_input *input, struct pollfd polls[RUN_INPUT_POLLS]);
void run_input_move(struct run_input *input, const struct pollfd polls[RUN_INPUT_POLLS]);

void run_input_close(struct run_input *input);

#endif
