/*
 * core_affinity.h - a core for every rank of a crowded machine whose ranks talk through sockets.
 *
 * Ranks that yield while they wait are always runnable, so the system sees equal loads and leaves them where they began: by chance
 * both hubs of a small sum share a core, and every call waits for it. So a rank that waits looks now and then whether it is on the core of its number among
 * the ranks that may use the same cores, and goes there if not. It is not pinned then: at once it may run where it might before, the system moves it if that is better, and if it
 * does so again and again the rank gives in, and looks less often. Who has rested often in one wait, which is long then, stays in its seat until the wait ends, so that
 * the neighbours around a ring share a core (plan_cache.c) in spite of a system that moves whoever it wakes. A caller's own code never runs pinned, nor do threads that it starts
 * inherit a seat. Affinity that somebody has set is respected, and so is what somebody sets meanwhile. But to the kernel
 * the cores that a thread has are from then on those that it was given: cores that come later, to the machine or to its cpuset, are not among them (seats=no: they are).
 *
 * Eight ranks on two cores, 4 bytes, medians (least..most) of ten starts in turns: 72 us (66..96) instead of 93 (66..124) in place, 76
 * (64..93) instead of 94 (79..148) out of place (docs/results/core.md has the command).
 */
#ifndef RANK_PROGRESS_CORE_AFFINITY_H
#define RANK_PROGRESS_CORE_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define CORE_AFFINITY_RESTS 64u                          /* between looks at the clock */
#define CORE_AFFINITY_RESTS_LONG 64u                     /* of a wait that is long     */
#define CORE_AFFINITY_PATIENCE_LEAST (25 * NS_PER_MS)    /* between looks at the core  */
#define CORE_AFFINITY_PATIENCE_MOST (6400 * NS_PER_MS)

struct core_affinity {
	bool is_wanted, is_held;
	uint32_t place; /* among the ranks that may use the same cores */
	uint32_t rests, wait_rests; /* in all, and in this wait */
	uint64_t patience_ns, look_ns;
	cpu_set_t allowed, only; /* while it is held: what the thread might use before, and what it may now */
};

void core_affinity_init(struct core_affinity *seat, bool is_wanted, uint32_t place);

/* Which of so many cores is the one of its turn: the first is 0. */
static inline uint32_t core_affinity_turn(uint32_t place, uint32_t cores)
{
	return cores > 0 ? place % cores : 0;
}

/* The core for a place; -1: there is nothing to choose. */
int core_affinity_core(const cpu_set_t *allowed, uint32_t place);
/* It was looked at the core: when is the next time? */
void core_affinity_looked(struct core_affinity *seat, bool was_elsewhere, uint64_t now_ns);

/* Looks, if it is time, and goes there: the calling thread. */
void core_affinity_keep(struct core_affinity *seat);

/* Goes there, and stays until it lets go: the calling thread. */
void core_affinity_hold(struct core_affinity *seat);
void core_affinity_let_go(struct core_affinity *seat);

/* The calling thread waits for a peer. */
static inline void core_affinity_rest(struct core_affinity *seat)
{
	if (!seat->is_wanted)
		return;
	seat->rests++;
	if (++seat->wait_rests == CORE_AFFINITY_RESTS_LONG)
		core_affinity_hold(seat);
	else if (seat->rests % CORE_AFFINITY_RESTS == 0 && !seat->is_held)
		core_affinity_keep(seat);
}

/* Its wait is over, or code of the caller's runs in between. */
static inline void core_affinity_leave(struct core_affinity *seat)
{
	seat->wait_rests = 0;
	if (seat->is_held)
		core_affinity_let_go(seat);
}

#endif
