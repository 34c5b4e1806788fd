/*
 * callbacks.h - what lane 0's own thread does beside driving: callbacks, closed gates, small calls in
 * the background.
 *
 * Callbacks of ended work run here and nowhere else, so that their thread is known. Work that
 * waits for its gate, and work on boards that nobody waits for, is looked at here from time to
 * time.
 */
#ifndef RANK_COMM_CALLBACKS_H
#define RANK_COMM_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

struct rank;
struct comm;
struct work;

/*
 * For struct progress_events; the context is the rank. Callbacks run, gates and small calls without a waiter are looked at;
 * returns the time of the next look.
 */
uint64_t callbacks_background(void *rank);
/* Is there a callback to run, or a queue to look at, now? */
bool callbacks_pending(void *rank);

/* With context->lock held: the work's callback is to be run; takes a reference that its caller has. */
void callbacks_call_back(struct rank *context, struct work *work);
/* A group has work in its queue that is not under way: it is looked at until it has none. With context->lock held. */
void callbacks_look_after_queues(struct rank *context);
/* The same, of this group, if nobody comes soon who waits for it. */
void callbacks_expect_waiter(struct rank *context, struct comm *group);

#endif
