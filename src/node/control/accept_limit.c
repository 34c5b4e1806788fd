#include "node/control/accept_limit.h"

#define TICKET UINT64_C(1000000)

void turnstile_init(struct turnstile *turnstile, uint64_t connections, uint64_t now_ns)
{
	uint64_t most = (connections + TURNSTILE_SPARE) * TICKET;

	*turnstile = (struct turnstile){.most = most, .tickets = most, .grown_ns = now_ns, .free_until_ns = UINT64_MAX};
}

void turnstile_expect(struct turnstile *turnstile, uint64_t now_ns)
{
	if (turnstile->free_until_ns < now_ns + TURNSTILE_EXPECT_NS)
		turnstile->free_until_ns = now_ns + TURNSTILE_EXPECT_NS;
}

void turnstile_settle(struct turnstile *turnstile)
{
	turnstile->free_until_ns = 0;
}

static void add(struct turnstile *turnstile, uint64_t tickets)
{
	uint64_t room = turnstile->most - turnstile->tickets;

	turnstile->tickets += tickets < room ? tickets : room;
}

/* Time that is too short for a millionth of a ticket is left for later. */
static void grow(struct turnstile *turnstile, uint64_t now_ns)
{
	uint64_t most = turnstile->most / TURNSTILE_RATE * (NS_PER_S / TICKET) + NS_PER_S; /* in which all have grown */
	uint64_t passed = now_ns > turnstile->grown_ns ? now_ns - turnstile->grown_ns : 0;

	add(turnstile, (passed < most ? passed : most) / (NS_PER_S / TICKET) * TURNSTILE_RATE);
	turnstile->grown_ns += passed - passed % (NS_PER_S / TICKET);
}

bool turnstile_admits(struct turnstile *turnstile, uint64_t now_ns)
{
	if (now_ns < turnstile->free_until_ns)
		return true;
	/* While it is locked they are handed out in batches: who waits for one ticket at a time wakes up for each. */
	if (turnstile->locked && now_ns < turnstile->look_ns)
		return false;
	grow(turnstile, now_ns);
	if (turnstile->tickets >= TICKET)
		return true;
	turnstile->locked = true;
	turnstile->look_ns = now_ns + TURNSTILE_PAUSE_NS;
	return false;
}

void turnstile_take(struct turnstile *turnstile, uint64_t now_ns)
{
	if (now_ns >= turnstile->free_until_ns)
		turnstile->tickets -= TICKET;
}

void turnstile_proved(struct turnstile *turnstile)
{
	add(turnstile, TICKET);
	turnstile->look_ns = 0; /* if it is locked: there is one now */
}

void turnstile_empty(struct turnstile *turnstile)
{
	turnstile->locked = false;
}

uint64_t turnstile_look_ns(const struct turnstile *turnstile, uint64_t now_ns)
{
	if (!turnstile->locked)
		return UINT64_MAX;
	return now_ns < turnstile->free_until_ns || turnstile->look_ns < now_ns ? now_ns : turnstile->look_ns;
}
