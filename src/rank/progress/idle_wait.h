/*
 * idle_wait.h - what a thread does while it waits for a peer: spin, then yield, then sleep.
 *
 * With a core for every rank a peer's answer is often nanoseconds away, so it spins first. With
 * more ranks than cores the peer may need this very core, so it yields at once. Only after some
 * hundred microseconds it sleeps: eight ranks on two cores need about a hundred for one small call
 * between sockets, and who sleeps within it must be woken (with 60 instead of 300 it takes 1.15
 * times as long).
 *
 * A rank that has a core to itself gets it back from a yield at once. If it does not, others need
 * the core, of whom we know nothing: another job, or ranks of this one that a lab or containers
 * show as hosts of their own. Then it neither spins nor yields for a while, but sleeps: who is
 * woken comes before those who yield (16 ranks of a lab on two busy cores took 0.6 times as long for
 * 4 MiB when they always slept). Some tens of microseconds say nothing of that kind: interrupts, and the host of a
 * virtual machine, take as much a hundred times a second, and two ranks with a core each that slept because of
 * it took 1.5 times as long for 100 MiB.
 */
#ifndef RANK_PROGRESS_IDLE_WAIT_H
#define RANK_PROGRESS_IDLE_WAIT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define IDLE_WAIT_SPINS 300u                 /* looks around, before the first yield          */
#define IDLE_WAIT_YIELD_NS (300 * NS_PER_US) /* of yielding before sleep                      */
#define IDLE_WAIT_LONG_NS (200 * NS_PER_US)  /* a yield in which another has had the core     */
#define IDLE_WAIT_TAKEN_NS (20 * NS_PER_MS)  /* for so long others are believed to need it    */

struct idle_wait {
	bool crowded;
	uint32_t turns;
	uint64_t since_ns; /* when the yielding began */
	uint64_t taken_until_ns; /* not crowded, and yet others need the core; 0: not that we know */
};

static inline void idle_wait_init(struct idle_wait *rest, bool crowded)
{
	*rest = (struct idle_wait){.crowded = crowded};
}

/* Something came: the next rest begins anew. */
static inline void idle_wait_reset(struct idle_wait *rest)
{
	rest->turns = 0;
	rest->since_ns = 0;
}

static inline void idle_wait_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Has it just spun in vain, where there is a core for everybody? */
static inline bool idle_wait_has_spun(const struct idle_wait *rest)
{
	return rest->turns == IDLE_WAIT_SPINS && rest->since_ns == 0;
}

/* Rests a moment: 0: look again; otherwise it is time to sleep, and that is the time now. */
static inline uint64_t idle_wait_turn(struct idle_wait *rest)
{
	if (!rest->crowded && rest->taken_until_ns == 0 && rest->turns++ < IDLE_WAIT_SPINS) {
		idle_wait_pause();
		return 0;
	}
	uint64_t now = clock_now_ns();
	if (rest->since_ns == 0)
		rest->since_ns = now;
	if (now - rest->since_ns >= IDLE_WAIT_YIELD_NS || now < rest->taken_until_ns)
		return now;
	sched_yield();
	if (!rest->crowded) {
		uint64_t then = clock_now_ns();

		rest->taken_until_ns = then - now >= IDLE_WAIT_LONG_NS ? then + IDLE_WAIT_TAKEN_NS : 0;
	}
	return 0;
}

#endif
