/*
 * rest.h - what a thread does while it waits for a peer: spin, then yield, then sleep.
 *
 * With a core for every rank a peer's answer is often nanoseconds away, so it spins first. With
 * more ranks than cores the peer may need this very core, so it yields at once. Only after some
 * hundred microseconds it sleeps: eight ranks on two cores need about a hundred for one small call
 * between sockets, and who sleeps within it must be woken (with 60 instead of 300 it takes 1.15
 * times as long).
 */
#ifndef RUNTIME_REST_H
#define RUNTIME_REST_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define REST_SPINS 300u                 /* looks around, before the first yield          */
#define REST_YIELD_NS (300 * NS_PER_US) /* of yielding before sleep                      */

struct rest {
	bool crowded;
	uint32_t turns;
	uint64_t since_ns; /* when the yielding began */
};

static inline void rest_init(struct rest *rest, bool crowded)
{
	*rest = (struct rest){.crowded = crowded};
}

static inline void rest_reset(struct rest *rest)
{
	rest->turns = 0;
	rest->since_ns = 0;
}

static inline void rest_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Has it just spun in vain, where there is a core for everybody? */
static inline bool rest_has_spun(const struct rest *rest)
{
	return rest->turns == REST_SPINS && rest->since_ns == 0;
}

/* Rests a moment: 0: look again; otherwise it is time to sleep, and that is the time now. */
static inline uint64_t rest_turn(struct rest *rest)
{
	if (!rest->crowded && rest->turns++ < REST_SPINS) {
		rest_pause();
		return 0;
	}
	uint64_t now = clock_now_ns();
	if (rest->since_ns == 0)
		rest->since_ns = now;
	if (now - rest->since_ns >= REST_YIELD_NS)
		return now;
	sched_yield();
	return 0;
}

#endif
