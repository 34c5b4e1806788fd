/*
 * poll_order.h - what who drives is to do about a small call between ranks that outnumber the cores, by sockets: look, look again, or let others run first.
 *
 * Who may share this core and was sent something since the last rest has not had its turn yet, so there can be nothing from it: to look would be
 * a system call in vain. And while two hubs on two cores exchange, all others of a hub's core wait for it: it looks again for some microseconds (look_limit.h) instead
 * of letting each of them have a turn in vain. What that gains, with other things, is told in docs/results/core.md.
 */
#ifndef RANK_PROGRESS_POLL_ORDER_H
#define RANK_PROGRESS_POLL_ORDER_H

#include "rank/progress/progress.h"

/* A call that was launched so long after the one before: the others have had their turns meanwhile. */
#define POLL_ORDER_NEW_NS (200 * NS_PER_US)

enum course {
	POLL_ORDER_MOVE,
	POLL_ORDER_REST,
	POLL_ORDER_LOOK, /* move, and look again */
};

enum course poll_order_choose(const struct progress *progress);
/* A call begins on the lane. */
void poll_order_begin(struct progress *progress, uint64_t launched_ns);

#endif
