/*
 * sched_picture.h - the latest batch of a job as a picture: when each worker's update starts, at which rate, where it
 * goes (to the hub, to an aggregator, along a chain), in which order, and which updates were dropped. Pure but for the
 * FILE.
 */
#ifndef FABRIC_SERVER_SCHED_PICTURE_H
#define FABRIC_SERVER_SCHED_PICTURE_H

#include <stdio.h>

#include "fabric/sched.h"

struct sched_picture_row {
	struct sched_decision decision;
	uint64_t bytes;
};

/* Zero: nothing was decided yet. */
struct sched_picture {
	uint64_t batch; /* its number */
	uint32_t count;
	struct sched_picture_row rows[LEDGER_WORKERS_MOST]; /* in the order of decisions */
};

/* Decisions of another batch than before begin a new picture. */
void sched_picture_add(struct sched_picture *picture, uint64_t batch, const struct sched_decision *decision,
                       uint64_t bytes);

/* One SVG document; every worker has a row. Errors stay in the FILE. */
void sched_picture_draw(const struct sched_picture *picture, const char *job, uint32_t workers, FILE *out);

#endif
