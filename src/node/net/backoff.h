/*
 * backoff.h - exponential backoff with jitter between attempts to connect.
 *
 * Pure. Half of each pause is random, so that a thousand ranks that were refused together do not come back
 * together.
 */
#ifndef NODE_NET_BACKOFF_H
#define NODE_NET_BACKOFF_H

#include <stdint.h>

#include "base/clock.h"
#include "base/rng.h"

#define BACKOFF_FIRST_NS (20 * NS_PER_MS)
#define BACKOFF_MOST_NS (1 * NS_PER_S)

struct backoff {
	struct rng rng;
	uint64_t pause_ns;
};

static inline void backoff_init(struct backoff *backoff, uint64_t seed)
{
	rng_init(&backoff->rng, seed);
	backoff->pause_ns = BACKOFF_FIRST_NS;
}

/* Returns a pause between half of the current one and all of it, and doubles the current one up to BACKOFF_MOST_NS. */
static inline uint64_t backoff_next_ns(struct backoff *backoff)
{
	uint64_t half = backoff->pause_ns / 2;
	uint64_t wait = half + rng_below(&backoff->rng, half + 1);
	backoff->pause_ns = backoff->pause_ns * 2 < BACKOFF_MOST_NS ? backoff->pause_ns * 2 : BACKOFF_MOST_NS;
	return wait;
}

#endif
