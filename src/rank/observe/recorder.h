/*
 * recorder.h - the flight recorder and the statistics of a rank. Any thread; no I/O.
 *
 * A call is recorded once, when it has ended. The recorder's lock is held for some dozen instructions, or while the
 * ring is copied, for some ten microseconds; the only lock taken under it is the tracer's, so it may be taken with any
 * other lock held.
 */
#ifndef RANK_OBSERVE_RECORDER_H
#define RANK_OBSERVE_RECORDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/ticks.h"
#include "node/observe/record_ring.h"
#include "node/observe/tally.h"

struct tracer;

struct recorder {
	pthread_mutex_t lock;
	struct ticks ticks;   /* the time of small calls */
	struct ring *ring;
	struct tally *tally;
	atomic_uint failures; /* calls and communicators that have failed: see dump.h */
};

/* by_clock: small calls are timed by the clock, as all others are. */
ESP_CHECKED enum esp_status recorder_open(struct recorder *recorder, bool by_clock);
void recorder_close(struct recorder *recorder); /* accepts a zeroed struct */

/* Adds an ended call to the ring, the statistics and the trace (NULL: none). Any thread. */
void recorder_add(struct recorder *recorder, struct tracer *tracer, const struct record *record);
/* Copies both; NULL: not that one. Any thread. */
void recorder_copy(struct recorder *recorder, struct ring *ring, struct tally *tally);

#endif
