/*
 * launcher_output.h - the output of the ranks, as whole lines with the rank in front.
 *
 *     rank 0 stdout --+
 *     rank 1 stdout --+-- lines --> our stdout      "[1] text"
 *     rank 0 stderr --+
 *     rank 1 stderr --+-- lines --> our stderr
 *
 * Memory is bounded: an unfinished line has at most RUN_LINE_MAX bytes, and while 64 KiB wait to be written to
 * our stdout or stderr, no more is read from the ranks for it. Never blocks: a stalled pager does not keep
 * espalier run from handling Ctrl-C.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_OUTPUT_H
#define TOOLS_LAUNCHER_LAUNCHER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/launcher/launcher_lines.h"

/* A rank's streams. */
enum run_stream { RUN_OUT, RUN_ERR };

/* Sees a line of a rank, head and then tail, before it is shown. True: it was taken, and is not shown. */
typedef bool run_take_fn(void *context, const char *head, size_t head_length, const char *tail, size_t tail_length);

#define RUN_OUTPUT_CLEAR "\r\033[K" /* clears the current line of a terminal */

struct run_sink {
	int fd;
	char *text; /* to be written: text[sent .. used-1] */
	size_t used, sent, capacity;
	int error;    /* errno; later output is dropped */
	bool midline; /* a line was written in part */
};

struct run_source {
	int fd; /* -1: closed */
	struct run_line line;
};

struct run_output {
	struct run_sink sinks[2];
	struct run_sink *targets[2]; /* by enum run_stream */
	struct run_source *sources;  /* two for each rank */
	uint32_t ranks;
	const char *said_by; /* prefix of our own lines, behind "espalier" */
	bool clears;         /* our lines go to a terminal, where a rank may have left a progress line */
	bool prefixed;
	run_take_fn *take; /* NULL: all lines are shown */
	void *take_context;
	bool shared; /* our stdout and stderr are the same file: lines of the two must not be mixed */
};

/* all_to_stderr: our stdout is for the result of the command. */
ESP_CHECKED enum esp_status launcher_output_open(struct run_output *output, uint32_t ranks, bool prefixed,
                                                 bool all_to_stderr, struct error *err);
void launcher_output_close(struct run_output *output);

/* Takes fd, the reading end of a pipe. ESP_EIO. */
ESP_CHECKED enum esp_status launcher_output_attach(struct run_output *output, uint32_t rank, enum run_stream stream,
                                                   int fd, struct error *err);

/* Reads once. False: no more for now, or the stream has ended. */
bool launcher_output_read(struct run_output *output, uint32_t rank, enum run_stream stream);

/* The rank has ended: flushes unfinished lines. */
void launcher_output_end(struct run_output *output, uint32_t rank);

/* Prints a line of our own on stderr, between those of the ranks. */
void launcher_output_say(struct run_output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The sink of a stream of the ranks: our stdout (0) or stderr (1). */
int launcher_output_target(const struct run_output *output, enum run_stream stream);

/* True if so much waits for our stdout (0) or stderr (1) that no more should be read for it. */
bool launcher_output_is_full(const struct run_output *output, int index);

/* Writes as much as does not block. */
void launcher_output_flush(struct run_output *output);

/* The descriptor of our stdout (0) or stderr (1), if output waits for it; -1: none does. */
int launcher_output_pending(const struct run_output *output, int index);

/* errno of a failed write; 0: none failed. */
int launcher_output_error(const struct run_output *output);

#endif
