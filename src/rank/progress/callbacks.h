/*
 * callbacks.h - what lane 0's own thread does beside driving: callbacks, closed gates, small calls in
 * the background.
 *
 * Callbacks of ended work run here and nowhere else, so that their thread is known. Work that
 * waits for its gate, and work on boards that nobody waits for, is looked at here from time to
 * time.
 */
#ifndef RANK_PROGRESS_CALLBACKS_H
#define RANK_PROGRESS_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

struct rank;
struct progress;
struct comm;
struct work;

/* With context->lock held: is there something to run now? */
bool callbacks_wait(struct rank *context);
/* Runs it. Without the lock. */
void callbacks_run(struct rank *context);
/* For drive(): lets the thread come back for chores. The argument is the context. */
bool callbacks_interrupt(void *context);
/* With context->lock held, which is given back meanwhile: looks at the queues; returns when to look again. */
uint64_t callbacks_look(struct rank *context);
/* With context->lock held: sleeps until there is duty, or until then. */
void callbacks_sleep(struct rank *context, struct progress *progress, uint64_t until_ns);

/* With context->lock held: the work's callback is to be run; takes a reference that its caller has. */
void callbacks_call_back(struct rank *context, struct work *work);
/* A group has work in its queue that is not under way: it is looked at until it has none. With context->lock held. */
void callbacks_look_after_queues(struct rank *context);
/* The same, of this group, if nobody comes soon who waits for it. */
void callbacks_expect_waiter(struct rank *context, struct comm *group);

#endif
