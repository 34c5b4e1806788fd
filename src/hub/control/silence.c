#include "hub/control/silence.h"

#include <assert.h>

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Without a byte for so long, the peer is asked. */
static uint64_t ask_after(uint64_t most_ns)
{
	return lesser(most_ns / 3, SILENCE_ASK);
}

static uint64_t dead_at(const struct silence *silence, uint64_t most_ns)
{
	uint64_t silent = most_ns < UINT64_MAX - silence->heard_ns ? silence->heard_ns + most_ns : UINT64_MAX;
	uint64_t unanswered = silence->asked_ns + lesser(most_ns - ask_after(most_ns), SILENCE_MOST - SILENCE_ASK);

	return silent > unanswered ? silent : unanswered;
}

enum silence_verdict silence_look(struct silence *silence, uint64_t now_ns, uint64_t most_ns)
{
	assert(most_ns >= SILENCE_LEAST);
	if (silence->asked_ns != 0)
		return now_ns > dead_at(silence, most_ns) ? SILENCE_DEAD : SILENCE_FINE;
	if (now_ns < silence->heard_ns || now_ns - silence->heard_ns <= ask_after(most_ns))
		return SILENCE_FINE;
	silence->asked_ns = now_ns;
	return SILENCE_ASKS;
}

uint64_t silence_next(const struct silence *silence, uint64_t most_ns)
{
	uint64_t when = silence->asked_ns != 0 ? dead_at(silence, most_ns) : silence->heard_ns + ask_after(most_ns);

	return when < UINT64_MAX ? when + 1 : when;
}
