/*
 * probe_home.h - sends files and a progress bar from the ranks of espalier probe to the process that started them,
 * over the ranks' standard output. One thread at each end; probe_tool_home_write() writes files.
 *
 *       here                        first host
 *       probe --hosts  ---ssh--->   the reporting rank
 *        files, a bar  <--lines--   "\x1e" and a character in front, among the other lines of its standard output
 *
 * The output folder may not exist on the rank's host, so the rank writes no file of its own. The process that started
 * the ranks decides which files are written, and where.
 */
#ifndef TOOLS_PROBE_PROBE_HOME_H
#define TOOLS_PROBE_PROBE_HOME_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/probe/probe_outcome.h"

/* Set for ranks whose output is searched for such lines: "yes", or "bar" for progress, too. */
#define PROBE_HOME_VARIABLE "ESP_PROBE_HOME"

enum home_file { HOME_MATRIX, HOME_TOPOLOGY, HOME_REPORT, HOME_FILES };

/* ---- the sending end: a rank ---- */

void probe_tool_home_send(enum home_file which, const char *text, size_t length, FILE *to);
void probe_tool_home_send_end(bool is_good, FILE *to);          /* after all files and output */
void probe_tool_home_send_progress(const char *line, FILE *to); /* "": the last one, removes the bar */

/* ---- the receiving end: the process that started the ranks ---- */

#define HOME_FILE_MOST (1u << 30) /* bytes: more than any file has, and no more than memory has room for */

struct home_part {
	char *text;
	size_t length;
	size_t taken; /* bytes received so far */
	FILE *file; /* NULL: not begun, or closed */
	bool is_whole;
};

struct home {
	const char *paths[HOME_FILES]; /* NULL: not wanted */
	struct home_part parts[HOME_FILES];
	int terminal; /* for a bar; -1: none */
	bool has_bar; /* a bar is drawn */
	bool has_end, is_good; /* the reporting rank has sent its end; it succeeded */
};

void probe_tool_home_open(struct home *home, const struct probe_options *options, int terminal);
void probe_tool_home_close(struct home *home);

/* Call whenever the ranks are started or restarted: drops whatever earlier ranks have sent. */
void probe_tool_home_begin(struct home *home);

/* A line of a rank, in two parts. True if it was a line for this module; otherwise it is ordinary output. */
bool probe_tool_home_take(struct home *home, const char *head, size_t head_length, const char *tail,
                          size_t tail_length);

/*
 * Writes the files that have arrived. Returns the exit status. is_all: the ranks report success, so a missing file is
 * an error.
 */
int probe_tool_home_write(struct home *home, bool is_all);

#endif
