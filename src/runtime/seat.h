/*
 * seat.h - a core for every rank of a crowded machine whose ranks talk through sockets.
 *
 * Ranks that yield while they wait are always runnable, so the system sees equal loads and leaves them where they began: by chance
 * both hubs of a small sum share a core, and every call waits for it. So a rank that waits looks now and then whether it is on the core of its number among
 * the ranks that may use the same cores, and goes there if not. It is not pinned: at once it may run where it might before, the system moves it if that is better, and if it
 * does so again and again the rank gives in, and looks less often. Affinity that somebody has set is respected, and so is what somebody sets meanwhile. But to the kernel
 * the cores that a thread has are from then on those that it was given: cores that come later, to the machine or to its cpuset, are not among them (seats=no: they are).
 *
 * Eight ranks on two cores, 4 bytes, medians (least..most) of ten starts in turns: 72 us (66..96) instead of 93 (66..124) in place, 76
 * (64..93) instead of 94 (79..148) out of place (docs/results/core.md has the command).
 */
#ifndef RUNTIME_SEAT_H
#define RUNTIME_SEAT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define SEAT_RESTS 64u                          /* between looks at the clock */
#define SEAT_PATIENCE_LEAST (100 * NS_PER_MS)   /* between looks at the core  */
#define SEAT_PATIENCE_MOST (6400 * NS_PER_MS)

struct core_seat {
	bool is_wanted;
	uint32_t place; /* among the ranks that may use the same cores */
	uint32_t rests;
	uint64_t patience_ns, look_ns;
};

void seat_init(struct core_seat *seat, bool is_wanted, uint32_t place);

/* The core for a place; -1: there is nothing to choose. */
int seat_core(const cpu_set_t *allowed, uint32_t place);
/* It was looked at the core: when is the next time? */
void seat_looked(struct core_seat *seat, bool was_elsewhere, uint64_t now_ns);

/* Looks, if it is time, and goes there: the calling thread. */
void seat_keep(struct core_seat *seat);

/* The calling thread waits for a peer. */
static inline void seat_rest(struct core_seat *seat)
{
	if (seat->is_wanted && ++seat->rests % SEAT_RESTS == 0)
		seat_keep(seat);
}

#endif
