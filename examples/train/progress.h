/*
 * progress.h - where the training stands, on stderr, by rank 0: a line rewritten in place on a terminal, otherwise
 * a line per epoch.
 */
#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool speaks;   /* this is rank 0 */
	bool terminal;
	int64_t last;  /* when the line was written; 0: there is none */
};

void progress_open(struct progress *progress, bool speaks);

/* May be called as often as one likes: a terminal is written to ten times a second. */
void progress_step(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line that stays, where lines stay: on a terminal it is rewritten too. */
void progress_line(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the line from a terminal. */
void progress_clear(struct progress *progress);

#endif
