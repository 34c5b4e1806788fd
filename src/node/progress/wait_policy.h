/*
 * wait_policy.h - how a thread waits for a peer: it polls, then yields, then sleeps, and on which core. Belongs to the
 * waiting thread.
 *
 * With a core for every rank a peer's answer is often nanoseconds away, so a thread polls first. With more ranks than
 * cores the peer may need this very core, so the thread yields at once. Only after some hundred microseconds it sleeps:
 * eight ranks on two cores need about a hundred for one small call between sockets, and a thread that sleeps within it
 * must be woken (with 60 instead of 300 such a call takes 1.15 times as long).
 *
 * A rank that has a core to itself gets it back from a yield at once. If it does not, other threads need the core:
 * those of another job, or ranks of this one that a lab or containers show as hosts of their own. Then the thread
 * neither polls nor yields for a while, but sleeps: the scheduler prefers a thread that is woken to threads that yield
 * (16 ranks of a lab on two busy cores took 0.6 times as long for 4 MiB when they always slept). Some tens of
 * microseconds show nothing of that kind: interrupts, and the host of a virtual machine, take as much a hundred times a
 * second, and two ranks with a core each that slept because of it took 1.5 times as long for 100 MiB.
 */
#ifndef NODE_PROGRESS_WAIT_POLICY_H
#define NODE_PROGRESS_WAIT_POLICY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "node/progress/core_affinity.h"

#define IDLE_WAIT_POLLS 300u                 /* before the first yield */
#define IDLE_WAIT_YIELD_NS (300 * NS_PER_US) /* of yielding before sleep */
#define IDLE_WAIT_LONG_NS (200 * NS_PER_US)  /* a yield in which another thread has had the core */
#define IDLE_WAIT_TAKEN_NS (20 * NS_PER_MS)  /* for which another thread is then assumed to need the core */

struct idle_wait {
	bool crowded;            /* more ranks than cores */
	uint32_t polls;
	uint64_t since_ns;       /* when the yielding began; 0: it has not */
	uint64_t taken_until_ns; /* not crowded, and yet another thread needs the core until then; 0: none is known to */
};

static inline void idle_wait_init(struct idle_wait *wait, bool crowded)
{
	*wait = (struct idle_wait){.crowded = crowded};
}

/* A message or command came: the next wait begins anew. */
static inline void idle_wait_reset(struct idle_wait *wait)
{
	wait->polls = 0;
	wait->since_ns = 0;
}

static inline void idle_wait_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* True: the thread has just polled in vain, where there is a core for every rank. */
static inline bool idle_wait_has_spun(const struct idle_wait *wait)
{
	return wait->polls == IDLE_WAIT_POLLS && wait->since_ns == 0;
}

/* Polls or yields once. 0: poll again; otherwise it is time to sleep, and the result is the time now. */
static inline uint64_t idle_wait_turn(struct idle_wait *wait)
{
	if (!wait->crowded && wait->taken_until_ns == 0 && wait->polls++ < IDLE_WAIT_POLLS) {
		idle_wait_pause();
		return 0;
	}
	uint64_t now = clock_now_ns();
	if (wait->since_ns == 0)
		wait->since_ns = now;
	if (now - wait->since_ns >= IDLE_WAIT_YIELD_NS || now < wait->taken_until_ns)
		return now;
	sched_yield();
	if (!wait->crowded) {
		uint64_t then = clock_now_ns();

		wait->taken_until_ns = then - now >= IDLE_WAIT_LONG_NS ? then + IDLE_WAIT_TAKEN_NS : 0;
	}
	return 0;
}

/* The same with a choice of core, for callers that drive a lane whose peers are reached by sockets. */
struct wait_policy {
	struct idle_wait idle;
	struct core_affinity affinity; /* of callers; lane threads move freely */
};

static inline void wait_policy_begin(struct wait_policy *policy)
{
	idle_wait_reset(&policy->idle);
}

/* As idle_wait_turn(). */
static inline uint64_t wait_policy_turn(struct wait_policy *policy, bool is_caller)
{
	if (is_caller)
		core_affinity_rest(&policy->affinity);
	return idle_wait_turn(&policy->idle);
}

/* A caller's wait is over, or code of the program runs in between, which never runs pinned to a core. */
static inline void wait_policy_leave(struct wait_policy *policy, bool is_caller)
{
	if (is_caller)
		core_affinity_leave(&policy->affinity);
}

#endif
