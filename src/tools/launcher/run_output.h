/*
 * run_output.h - what the ranks print, as whole lines with the rank in front.
 *
 *     rank 0 stdout --+
 *     rank 1 stdout --+-- lines --> our stdout      "[1] text"
 *     rank 0 stderr --+
 *     rank 1 stderr --+-- lines --> our stderr
 *
 * Memory is bounded: an unfinished line has at most RUN_LINE_MAX bytes, and as long as 64 KiB wait for
 * somebody to read our own stdout or stderr, nothing more is read from the ranks for it. Nothing here
 * waits: a pager that stands still does not keep espalier run from hearing Ctrl-C.
 */
#ifndef TOOLS_LAUNCHER_RUN_OUTPUT_H
#define TOOLS_LAUNCHER_RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/launcher/run_lines.h"

/* Which of a rank's streams. */
enum run_stream { RUN_OUT, RUN_ERR };

/* A line of a rank, head and then tail, before it is shown. True: it was taken, and is not. */
typedef bool run_take_fn(void *context, const char *head, size_t head_length, const char *tail, size_t tail_length);

#define RUN_OUTPUT_CLEAR "\r\033[K" /* what stands in the line goes */

struct run_sink {
	int fd;
	char *text; /* waits to be written: text[sent .. used-1] */
	size_t used, sent, capacity;
	int error;    /* errno; what comes after it is dropped */
	bool midline; /* a line has been written in part */
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
	const char *said_by; /* what our own lines begin with, behind "espalier" */
	bool clears; /* they stand on a terminal, where a rank may have left the line that shows its progress */
	bool prefixed;
	run_take_fn *take; /* NULL: all lines are shown */
	void *take_context;
	bool shared; /* our stdout and stderr are the same file: a line of one must not end up within one of the other */
};

/* all_to_stderr: our stdout is for something else. */
ESP_CHECKED enum esp_status run_output_open(struct run_output *output, uint32_t ranks, bool prefixed,
                                            bool all_to_stderr, struct error *err);
void run_output_close(struct run_output *output);

/* Takes fd, the reading end of a pipe. ESP_EIO. */
ESP_CHECKED enum esp_status run_output_attach(struct run_output *output, uint32_t rank, enum run_stream stream, int fd,
                                              struct error *err);

/* Reads once. False: there is no more, now or ever. */
bool run_output_read(struct run_output *output, uint32_t rank, enum run_stream stream);

/* No more will come of this rank: flushes unfinished lines. */
void run_output_end(struct run_output *output, uint32_t rank);

/* A line of our own on stderr, between those of the ranks. */
void run_output_say(struct run_output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where a stream of the ranks goes: our stdout (0) or stderr (1). */
int run_output_target(const struct run_output *output, enum run_stream stream);

/* So much waits for our stdout (0) or stderr (1) that reading more makes no sense. */
bool run_output_is_full(const struct run_output *output, int index);

/* Writes what can be written without waiting. */
void run_output_flush(struct run_output *output);

/* Our stdout (0) or stderr (1), if something waits for it to take more; -1: nothing does. */
int run_output_pending(const struct run_output *output, int index);

/* Why something could not be written; 0: all was. */
int run_output_error(const struct run_output *output);

#endif
