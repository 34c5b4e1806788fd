/*
 * launcher_lines.h - splits a byte stream into lines.
 *
 * Pure, with at most RUN_LINE_MAX bytes of memory for an unfinished line, none for a finished one. A longer
 * line is handed out in pieces of RUN_LINE_MAX bytes, each as a line of its own; pieces after the first are
 * marked. A line may have any bytes, NUL too; only '\n' ends it.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_LINES_H
#define TOOLS_LAUNCHER_LAUNCHER_LINES_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_LINE_MAX 16384u

struct run_line {
	char *text; /* the unfinished line; NULL: none */
	size_t used;
	bool continued; /* its beginning was handed out already */
};

/* A line without its '\n': head and then tail, either of which may be empty. */
typedef void run_line_fn(void *context, bool continued, const char *head, size_t head_length, const char *tail,
                         size_t tail_length);

void launcher_line_feed(struct run_line *line, const char *data, size_t length, run_line_fn *emit, void *context);

/* The stream has ended: hands out the unfinished line. */
void launcher_line_end(struct run_line *line, run_line_fn *emit, void *context);

#endif
