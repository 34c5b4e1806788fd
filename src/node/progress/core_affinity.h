/*
 * core_affinity.h - a core for every rank of a crowded host whose ranks talk through sockets. Acts on the calling
 * thread.
 *
 * Ranks that yield while they wait are always runnable, so the scheduler sees equal loads and leaves them where they
 * began: by chance both hubs of a small sum share a core, and every call waits for it. So a waiting caller checks now
 * and then whether it is on the core of its rank's place among the ranks that may use the same cores, and moves there
 * if not. It is not pinned: at once it may run where it might before. If the scheduler moves it away again and again,
 * the caller checks less often. A caller that has waited for long stays on that core until the wait ends, so that
 * neighbours in a ring share a core (plan_cache.c). Code of the program never runs pinned, and threads that it starts
 * inherit nothing. An affinity that the program or the launcher has set is respected, also if it is set meanwhile. But
 * from then on the kernel takes the cores that the thread has for cores that it was given: cores that are added to the
 * machine or its cpuset later are not among them (with core_affinity=no they are).
 *
 * bench of 4 bytes over TCP on two cores, in place, least of seven starts in turns: four ranks 19 instead of 28 us,
 * eight 43 instead of 52 (espalier bench --ranks 4,8 --transport tcp --size 4, with and without core_affinity=no).
 */
#ifndef NODE_PROGRESS_CORE_AFFINITY_H
#define NODE_PROGRESS_CORE_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define CORE_AFFINITY_RESTS 64u                       /* between readings of the clock */
#define CORE_AFFINITY_RESTS_LONG 64u                  /* of a long wait */
#define CORE_AFFINITY_PATIENCE_LEAST (25 * NS_PER_MS) /* between checks of the core */
#define CORE_AFFINITY_PATIENCE_MOST (6400 * NS_PER_MS)

struct core_affinity {
	bool is_wanted, is_held;
	uint32_t place; /* among the ranks that may use the same cores */
	uint32_t rests, wait_rests; /* of the thread; of this wait */
	uint64_t patience_ns, check_ns;
	cpu_set_t allowed, only; /* while it is held: the affinity before, and the present one */
};

void core_affinity_init(struct core_affinity *affinity, bool is_wanted, uint32_t place);

/* The index of the core that belongs to a place, among so many cores. */
static inline uint32_t core_affinity_turn(uint32_t place, uint32_t cores)
{
	return cores > 0 ? place % cores : 0;
}

/* The number of the core for a place; -1: there is nothing to choose. */
int core_affinity_core(const cpu_set_t *allowed, uint32_t place);
/* The core was checked: sets the time of the next check. */
void core_affinity_checked(struct core_affinity *affinity, bool was_elsewhere, uint64_t now_ns);

/* Checks the core, if it is time, and moves the thread. */
void core_affinity_keep(struct core_affinity *affinity);

/* Moves the thread, which stays until core_affinity_let_go(). */
void core_affinity_hold(struct core_affinity *affinity);
void core_affinity_let_go(struct core_affinity *affinity);

/* The thread waits for a peer and has found nothing. */
static inline void core_affinity_rest(struct core_affinity *affinity)
{
	if (!affinity->is_wanted)
		return;
	affinity->rests++;
	if (++affinity->wait_rests == CORE_AFFINITY_RESTS_LONG)
		core_affinity_hold(affinity);
	else if (affinity->rests % CORE_AFFINITY_RESTS == 0 && !affinity->is_held)
		core_affinity_keep(affinity);
}

/* The wait is over, or code of the program runs in between. */
static inline void core_affinity_leave(struct core_affinity *affinity)
{
	affinity->wait_rests = 0;
	if (affinity->is_held)
		core_affinity_let_go(affinity);
}

#endif
