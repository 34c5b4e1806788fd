/*
 * keyed.h - calls that ranks make in different orders, told apart by a key.
 *
 * Whoever makes such a call tells the group's first rank. When all have made the call with
 * that key, the first rank tells all to start it; they start keyed calls in the order in
 * which they are told, on a stream of their own, so that all have one order. As a call starts
 * only when everybody has made it, no order of calls can make ranks wait for each other for ever.
 *
 * Everything here is done with context->lock held.
 */
#ifndef RANK_COMM_KEYED_H
#define RANK_COMM_KEYED_H

#include "rank/failure.h"
#include "wire/control_msg.h"

struct work;
struct comm;

/* On the first rank: who has made the call with this key. */
struct roll_call {
	struct roll_call *next;
	uint64_t key;
	uint32_t count;       /* ranks that have                        */
	uint32_t first_rank;  /* the one whose note is kept             */
	struct call_note note;
	bool has_come[];      /* by place in the group                  */
};

struct keyed {
	struct work *waiting;   /* calls made here that have not been started */
	struct roll_call *rolls;
	uint64_t started;       /* keyed calls that were started              */
	uint32_t missing;       /* the rank that has not made the call `missing_key`, as was last heard ... */
	uint64_t missing_key;
	uint64_t missing_ns;    /* ... at that time; 0: never                 */
};

/* Makes the call of a piece of work. Without the lock. */
enum esp_status keyed_start(struct work *work, struct failure *failure);
/* CONTROL_READY and CONTROL_GO. Without the lock; the group is visited. */
void keyed_ready(struct comm *group, uint32_t from, const struct call_note *note);
void keyed_go(struct comm *group, uint64_t key);
/*
 * A member waits in the call with this key. On the first rank: tells all who has not made it. Without the lock; the group is
 * visited.
 */
void keyed_asked(struct comm *group, uint64_t key);

void keyed_forget(struct keyed *keyed, struct work *work);
void keyed_fini(struct keyed *keyed);

#endif
