/*
 * callbacks.h - requests to lane 0's thread beside driving: callbacks of ended work, and queues that no caller looks
 * after.
 *
 * Any thread posts requests here; background.h is the other end.
 */
#ifndef RANK_COMM_CALLBACKS_H
#define RANK_COMM_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

struct rank;
struct comm;
struct work;

/* Is there a callback to run, or a queue to look at, now? */
bool comm_callbacks_pending(void *rank); /* for struct progress_events */

/* With context->lock held: the work's callback is to be run; takes a reference that its caller has. */
void comm_callbacks_call_back(struct rank *context, struct work *work);
/* A group has work in its queue that is not under way: it is looked at until it has none. With context->lock held. */
void comm_callbacks_look_after_queues(struct rank *context);
/* The same, of this group, if no waiter comes soon. */
void comm_callbacks_expect_waiter(struct rank *context, struct comm *group);

#endif
