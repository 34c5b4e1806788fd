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

struct context;
struct driver;
struct group;
struct work;

/* With context->lock held: is there something to run now? */
bool chores_wait(struct context *context);
/* Runs it. Without the lock. */
void chores_run(struct context *context);
/* For drive(): lets the thread come back for chores. The argument is the context. */
bool chores_interrupt(void *context);
/* With context->lock held, which is given back meanwhile: looks at the queues; returns when to look again. */
uint64_t chores_look(struct context *context);
/* With context->lock held: sleeps until there is duty, or until then. */
void chores_sleep(struct context *context, struct driver *driver, uint64_t until_ns);

/* With context->lock held: the work's callback is to be run; takes a reference that its caller has. */
void chores_call_back(struct context *context, struct work *work);
/* A group has work in its queue that is not under way: it is looked at until it has none. With context->lock held. */
void chores_look_after_queues(struct context *context);
/* The same, of this group, if nobody comes soon who waits for it. */
void chores_expect_waiter(struct context *context, struct group *group);

#endif
