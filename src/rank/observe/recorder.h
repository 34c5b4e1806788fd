/*
 * recorder.h - what a rank remembers of its calls: the flight recorder and the statistics. Private to src/rank.
 *
 * A call is written down once, when it has ended; those under way are found where they are (rank_account.h). The
 * recorder's lock is held for some dozen instructions (or while it is copied, for some ten microseconds) and nothing is locked under it, so it may be taken with any other
 * lock held; the same holds for the trace's.
 */
#ifndef RANK_OBSERVE_RECORDER_H
#define RANK_OBSERVE_RECORDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/ticks.h"
#include "node/observe/record_ring.h"
#include "node/observe/tally.h"
#include "rank/comm/call.h"

struct rank;
struct comm;
struct shm_small_call;
struct work;

struct recorder {
	pthread_mutex_t lock;
	struct ticks ticks;   /* what small calls are timed by */
	struct ring *ring;
	struct tally *tally;
	atomic_uint failures; /* calls and groups that have failed: see dump.h */
};

/* by_clock: small calls are to be timed as all others are. */
ESP_CHECKED enum esp_status recorder_open(struct recorder *recorder, bool by_clock);
void recorder_close(struct recorder *recorder); /* accepts a zeroed struct */

/* What is known of a call from the start. bytes of messages are known at the end. */
void recorder_describe(const struct comm *group, const struct call *call, const struct call_note *note, struct record *out);
/* The same of work, and of a call on the board, with the rank that it waits for. */
void recorder_describe_small_call(const struct comm *group, const struct shm_small_call *op, struct record *out);
void recorder_describe_work(const struct work *work, struct record *out);

/* A call has ended. Board: by who holds it. Work: with context->lock held, before anybody is told. */
void recorder_add_small_call(const struct comm *group, const struct shm_small_call *op, enum esp_status status, bool waited);
void recorder_add_work(const struct work *work, enum esp_status status);

/* Works in what is left in the group's queue. With context->lock held, or by who made the calls. */
void recorder_drain(const struct comm *group);

/* Copies of both; NULL: that one is not wanted. Without context->lock, or with it. */
void recorder_copy(struct rank *context, struct ring *ring, struct tally *tally);
void recorder_copy_locked(struct rank *context, struct ring *ring, struct tally *tally);

#endif
