/*
 * keyed.h - calls that ranks make in different orders, told apart by a key.
 *
 * A rank that makes such a call tells the group's first rank. When all have made the call with that key, the first rank
 * tells all to start it; they start keyed calls in the order in which they are told, on a stream of their own, so that
 * all have one order. As a call starts only when all have made it, no order of calls can make ranks wait for each other
 * for ever.
 *
 * Everything here is done with context->lock held.
 */
#ifndef RANK_COMM_KEYED_H
#define RANK_COMM_KEYED_H

#include "rank/comm/comm_state.h"

/* Of work with a key. */
extern const struct work_ops keyed_ops;
/* CONTROL_READY and CONTROL_GO. Without the lock; the group is visited. */
void comm_keyed_ready(struct comm *group, uint32_t from, const struct call_note *note);
void comm_keyed_go(struct comm *group, uint64_t key);
/*
 * A member waits in the call with this key. On the first rank: tells all ranks that have not made it. Without the lock;
 * the group is visited.
 */
void comm_keyed_asked(struct comm *group, uint64_t key);

void comm_keyed_forget(struct keyed *keyed, struct work *work);
void comm_keyed_fini(struct keyed *keyed);

#endif
