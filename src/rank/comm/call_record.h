/*
 * call_record.h - calls as records for the flight recorder, and how they get there.
 *
 * Small calls leave a few words in a queue of their communicator (recorder_queue.h) and are worked in some dozen at a
 * time.
 */
#ifndef RANK_COMM_CALL_RECORD_H
#define RANK_COMM_CALL_RECORD_H

#include "node/observe/record_ring.h"
#include "node/observe/tally.h"
#include "rank/comm/call.h"

struct rank;
struct comm;
struct shm_small_call;
struct work;

/* The properties of a call that are known from the start. Bytes of messages are known at the end. */
void call_record_describe(const struct comm *group, const struct call *call, const struct call_note *note,
                          struct record *out);
/* The same of a call on the small path, and of work by this plan (work_plan()), with the rank that it waits for. */
void call_record_small(const struct comm *group, const struct shm_small_call *op, struct record *out);
void call_record_work(const struct work *work, const char *plan, struct record *out);

/*
 * A call has ended. Small path: called by the thread that holds it. Work: with context->lock held, before any waiter is
 * told.
 */
void call_record_add_small(const struct comm *group, const struct shm_small_call *op, enum esp_status status,
                           bool waited);
void call_record_add_work(const struct work *work, const char *plan, enum esp_status status);

/*
 * Adds the records that are left in the group's queue. With context->lock held, or by the thread that made the calls.
 */
void call_record_drain(const struct comm *group);

/* Copies of both; NULL: that one is not wanted. Without context->lock, or with it. */
void call_record_copy(struct rank *context, struct ring *ring, struct tally *tally);
void call_record_copy_locked(struct rank *context, struct ring *ring, struct tally *tally);

#endif
