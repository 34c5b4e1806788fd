/*
 * wait_hint.h - predicts whether callers that start small calls wait for them at once. Any thread; no I/O, no clock.
 *
 * A started call is driven by the lane thread, which has to be woken, so that data moves while the caller computes. A
 * caller that waits at once drives the lane itself, as in a blocking call, and the woken lane thread only takes its
 * core: eight ranks on two cores took 75 to 100 us for 4 bytes through memory that take 8 in a blocking call. So after
 * some calls whose callers waited at once the next ones are predicted to be waited for, and the lane thread is left
 * asleep. It checks now and then whether the caller came, for the call that was left the longest; if not, that was a
 * miss, and twice as many prompt waits are needed before the next prediction. The prediction itself is kept per lane,
 * and per communicator for its small path (progress.h, comm.h): it delays no other calls.
 *
 * Several threads of the caller may share a hint: it is a guess, so its atomics order nothing.
 */
#ifndef NODE_PROGRESS_WAIT_HINT_H
#define NODE_PROGRESS_WAIT_HINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WAIT_HINT_BYTES (UINT64_C(64) << 10) /* of a call that counts as small */
#define WAIT_HINT_PROMPT (50 * NS_PER_US)    /* between a start, or the end of another wait, and the wait */
#define WAIT_HINT_LEAST 8u                   /* prompt waits in a row before the next one is predicted */
#define WAIT_HINT_MOST 1024u
#define WAIT_HINT_PATIENCE (300 * NS_PER_US) /* then the predicted caller does not come any more */
#define WAIT_HINT_LOOK_EVERY (2 * NS_PER_MS) /* between checks for it; rarely, as calls are predicted all the time */
#define WAIT_HINT_LOOK_FOR (20 * NS_PER_MS)  /* the checks go on after the last prediction */

struct wait_hint {
	_Atomic uint32_t prompt;  /* waits in a row */
	_Atomic uint32_t misses;  /* needed: WAIT_HINT_LEAST << misses */
	_Atomic uint64_t left_ns; /* end of the last wait */
};

static inline uint32_t wait_hint_needed(const struct wait_hint *hint)
{
	return WAIT_HINT_LEAST << atomic_load_explicit(&hint->misses, memory_order_relaxed);
}

/* True if the caller that starts a small call now is predicted to wait for it at once. */
static inline bool wait_hint_expects(const struct wait_hint *hint)
{
	return atomic_load_explicit(&hint->prompt, memory_order_relaxed) >= wait_hint_needed(hint);
}

/* True if the caller that is predicted since expected_ns may still come; 0: none is predicted. */
static inline bool wait_hint_may_come(uint64_t expected_ns, uint64_t now)
{
	return expected_ns != 0 && now < expected_ns + WAIT_HINT_PATIENCE;
}

/* No caller has waited for a call that was predicted to be waited for. */
static inline void wait_hint_miss(struct wait_hint *hint)
{
	uint32_t misses = atomic_load_explicit(&hint->misses, memory_order_relaxed);

	atomic_store_explicit(&hint->prompt, 0, memory_order_relaxed);
	if (WAIT_HINT_LEAST << misses < WAIT_HINT_MOST)
		atomic_store_explicit(&hint->misses, misses + 1, memory_order_relaxed);
}

/*
 * A caller begins to wait for a small call that was started at started_ns. A late wait costs several prompt ones, not
 * all: the caller was kept from its core, or computes meanwhile.
 */
static inline void wait_hint_wait(struct wait_hint *hint, uint64_t started_ns, uint64_t now)
{
	uint64_t left_ns = atomic_load_explicit(&hint->left_ns, memory_order_relaxed);
	uint32_t prompt = atomic_load_explicit(&hint->prompt, memory_order_relaxed);
	uint32_t needed = wait_hint_needed(hint);

	if (now - (started_ns > left_ns ? started_ns : left_ns) <= WAIT_HINT_PROMPT) {
		prompt += prompt < 2 * needed;
		/* Enough prompt waits make up for a miss; other threads may do the same meanwhile. */
		if (prompt == 2 * needed && needed > WAIT_HINT_LEAST) {
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
