/*
 * wait_hint.h - do callers who start small calls wait for them at once?
 *
 * To start a call leaves it to a lane's own thread, which has to be woken, so that data moves while the caller computes. A caller that
 * waits at once drives the lane itself, as in a blocking call, and the thread that was woken only takes its core: eight ranks on two cores took
 * 75 to 100 us for 4 bytes through memory that take 8 in a blocking call. So after some calls that were waited for at once the next ones are expected to be,
 * and the thread is left asleep. It looks now and then whether somebody came, for what was left the longest; if not, that was a miss, and twice as many
 * prompt waits are needed before the next call is expected to be waited for. What is expected on a lane and on the board of a group is known there
 * (progress.h, comm.h): nobody else's calls wait for it.
 *
 * Several threads of the caller may have a hint in common: it is a guess, so nothing here is ordered with anything else.
 */
#ifndef NODE_PROGRESS_WAIT_HINT_H
#define NODE_PROGRESS_WAIT_HINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WAIT_HINT_BYTES (UINT64_C(64) << 10) /* of a call that counts as small                                    */
#define WAIT_HINT_PROMPT (50 * NS_PER_US)    /* between a start, or the end of another wait, and the wait         */
#define WAIT_HINT_LEAST 8u                   /* prompt waits in a row before the next one is expected             */
#define WAIT_HINT_MOST 1024u
#define WAIT_HINT_PATIENCE (300 * NS_PER_US) /* then who was expected does not come any more                     */
#define WAIT_HINT_LOOK_EVERY (2 * NS_PER_MS) /* at whether somebody came; rarely, as callers expect calls all the time */
#define WAIT_HINT_LOOK_FOR (20 * NS_PER_MS)  /* since somebody was expected last                                  */

struct wait_hint {
	_Atomic uint32_t prompt;  /* waits in a row       */
	_Atomic uint32_t misses;  /* needed: WAIT_HINT_LEAST << misses */
	_Atomic uint64_t left_ns; /* end of the last wait */
};

static inline uint32_t wait_hint_needed(const struct wait_hint *hint)
{
	return WAIT_HINT_LEAST << atomic_load_explicit(&hint->misses, memory_order_relaxed);
}

/* Will who starts a small call now wait for it at once? */
static inline bool wait_hint_expects(const struct wait_hint *hint)
{
	return atomic_load_explicit(&hint->prompt, memory_order_relaxed) >= wait_hint_needed(hint);
}

/* May somebody still come who is expected since then? 0: nobody is. */
static inline bool wait_hint_may_come(uint64_t expected_ns, uint64_t now)
{
	return expected_ns != 0 && now < expected_ns + WAIT_HINT_PATIENCE;
}

/* Nobody has waited for a call that was expected to be waited for. */
static inline void wait_hint_miss(struct wait_hint *hint)
{
	uint32_t misses = atomic_load_explicit(&hint->misses, memory_order_relaxed);

	atomic_store_explicit(&hint->prompt, 0, memory_order_relaxed);
	if (WAIT_HINT_LEAST << misses < WAIT_HINT_MOST)
		atomic_store_explicit(&hint->misses, misses + 1, memory_order_relaxed);
}

/* Somebody begins to wait for a small call that was started then. One that comes late was kept from its core, or computes meanwhile: it counts as several prompt ones. */
static inline void wait_hint_wait(struct wait_hint *hint, uint64_t started_ns, uint64_t now)
{
	uint64_t left_ns = atomic_load_explicit(&hint->left_ns, memory_order_relaxed);
	uint32_t prompt = atomic_load_explicit(&hint->prompt, memory_order_relaxed);
	uint32_t needed = wait_hint_needed(hint);

	if (now - (started_ns > left_ns ? started_ns : left_ns) <= WAIT_HINT_PROMPT) {
		prompt += prompt < 2 * needed;
		if (prompt == 2 * needed && needed > WAIT_HINT_LEAST) { /* old misses are forgiven; other threads may do the same meanwhile */
			uint32_t misses = atomic_load_explicit(&hint->misses, memory_order_relaxed);

			if (misses > 0)
				atomic_store_explicit(&hint->misses, misses - 1, memory_order_relaxed);
			prompt = needed;
		}
	} else {
		prompt -= prompt < needed / 2 ? prompt : needed / 2;
	}
	atomic_store_explicit(&hint->prompt, prompt, memory_order_relaxed);
}

static inline void wait_hint_leave(struct wait_hint *hint, uint64_t now)
{
	atomic_store_explicit(&hint->left_ns, now, memory_order_relaxed);
}

#endif
