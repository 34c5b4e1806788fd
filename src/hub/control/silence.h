/*
 * silence.h - when a peer that says nothing is asked, and when it is considered dead. Pure: time is an argument.
 *
 * A peer is dead only after it has been asked and has had time to answer: a process that stood still itself, or had no
 * turn for long, first asks. The caller looks for bytes that have come meanwhile before it believes SILENCE_DEAD.
 */
#ifndef HUB_CONTROL_SILENCE_H
#define HUB_CONTROL_SILENCE_H

#include <stdint.h>

#include "base/clock.h"

#define SILENCE_ASK (3 * NS_PER_S)   /* without a byte: the peer is asked; earlier by a caller with little patience */
#define SILENCE_MOST (10 * NS_PER_S) /* and then considered dead, unless the caller has another patience */
#define SILENCE_LEAST NS_PER_S       /* of a patience */

struct silence {
	uint64_t heard_ns, asked_ns; /* asked_ns 0: nothing has been asked since */
};

enum silence_verdict {
	SILENCE_FINE,
	SILENCE_ASKS, /* a PING is due; it counts as sent */
	SILENCE_DEAD,
};

static inline void silence_heard(struct silence *silence, uint64_t now_ns)
{
	*silence = (struct silence){.heard_ns = now_ns};
}

/* most_ns: the patience, at least SILENCE_LEAST. UINT64_MAX: without end. */
enum silence_verdict silence_look(struct silence *silence, uint64_t now_ns, uint64_t most_ns);
/* When to look again at the latest. */
uint64_t silence_next(const struct silence *silence, uint64_t most_ns);

#endif
