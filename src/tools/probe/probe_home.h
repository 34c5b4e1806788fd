/*
 * probe_home.h - what comes home from the hosts of espalier probe --hosts, or from the ranks of -n: files, and how far probing is.
 *
 *     here                        first host
 *     probe --hosts  ---ssh--->   the rank that tells
 *      files, a bar  <--lines--   "\x1e" and a letter in front, among the other lines of its standard output
 *
 * The folder here may not be there, so the rank writes no file of its own. Where files go, and whether there are any, is
 * decided here alone.
 */
#ifndef TOOLS_PROBE_PROBE_HOME_H
#define TOOLS_PROBE_PROBE_HOME_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/probe/probe_outcome.h"

/* Tells ranks that somebody takes such lines from their output: "yes", or "bar" for progress too. */
#define PROBE_HOME_VARIABLE "ESP_PROBE_HOME"

enum home_file { HOME_MATRIX, HOME_TOPOLOGY, HOME_REPORT, HOME_FILES };

/* ---- the rank's end ---- */

void home_send(enum home_file which, const char *text, size_t length, FILE *to);
void home_send_end(bool is_good, FILE *to); /* all has been said, and files sent */
void home_send_progress(const char *line, FILE *to); /* "": there is no more to come */

/* ---- the end that has started it ---- */

#define HOME_FILE_MOST (1u << 30) /* bytes: more than any file has, and no more than there is memory for */

struct home_part {
	char *text;
	size_t length;
	size_t taken; /* bytes that have come so far */
	FILE *file; /* NULL: closed, or it has not begun */
	bool is_whole;
};

struct home {
	const char *paths[HOME_FILES]; /* NULL: not asked for */
	struct home_part parts[HOME_FILES];
	int terminal; /* for a bar; -1: none */
	bool has_bar; /* one stands there */
	bool has_end, is_good; /* the rank that tells has told all; and all is well */
};

void home_open(struct home *home, const struct probe_options *options, int terminal);
void home_close(struct home *home);

/* The ranks are started, once more perhaps: what others have sent before them does not count. */
void home_begin(struct home *home);

/* A line of a rank, head and then tail. True: it was meant for us. */
bool home_take(struct home *home, const char *head, size_t head_length, const char *tail, size_t tail_length);

/* Writes what has come. The exit status. is_all: the ranks say that all is well, so that what has not come is missed. */
int home_write(struct home *home, bool is_all);

#endif
