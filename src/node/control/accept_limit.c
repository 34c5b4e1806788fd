#include "node/control/accept_limit.h"

#define TICKET UINT64_C(1000000)

void accept_limit_init(struct accept_limit *accept_limit, uint64_t connections, uint64_t now_ns)
{
	uint64_t most = (connections + ACCEPT_LIMIT_SPARE) * TICKET;

	*accept_limit = (struct accept_limit){.most = most, .tickets = most, .grown_ns = now_ns, .free_until_ns = UINT64_MAX};
}

void accept_limit_expect(struct accept_limit *accept_limit, uint64_t now_ns)
{
	if (accept_limit->free_until_ns < now_ns + ACCEPT_LIMIT_EXPECT_NS)
		accept_limit->free_until_ns = now_ns + ACCEPT_LIMIT_EXPECT_NS;
}

void accept_limit_settle(struct accept_limit *accept_limit)
{
	accept_limit->free_until_ns = 0;
}

static void add(struct accept_limit *accept_limit, uint64_t tickets)
{
	uint64_t room = accept_limit->most - accept_limit->tickets;

	accept_limit->tickets += tickets < room ? tickets : room;
}

/* Time that is too short for a millionth of a ticket is left for later. */
static void grow(struct accept_limit *accept_limit, uint64_t now_ns)
{
	uint64_t most = accept_limit->most / ACCEPT_LIMIT_RATE * (NS_PER_S / TICKET) + NS_PER_S; /* in which all have grown */
	uint64_t passed = now_ns > accept_limit->grown_ns ? now_ns - accept_limit->grown_ns : 0;

	add(accept_limit, (passed < most ? passed : most) / (NS_PER_S / TICKET) * ACCEPT_LIMIT_RATE);
	accept_limit->grown_ns += passed - passed % (NS_PER_S / TICKET);
}

bool accept_limit_admits(struct accept_limit *accept_limit, uint64_t now_ns)
{
	if (now_ns < accept_limit->free_until_ns)
		return true;
	/* While it is locked they are handed out in batches: who waits for one ticket at a time wakes up for each. */
	if (accept_limit->locked && now_ns < accept_limit->look_ns)
		return false;
	grow(accept_limit, now_ns);
	if (accept_limit->tickets >= TICKET)
		return true;
	accept_limit->locked = true;
	accept_limit->look_ns = now_ns + ACCEPT_LIMIT_PAUSE_NS;
	return false;
}

void accept_limit_take(struct accept_limit *accept_limit, uint64_t now_ns)
{
	if (now_ns >= accept_limit->free_until_ns)
		accept_limit->tickets -= TICKET;
}

void accept_limit_proved(struct accept_limit *accept_limit)
{
	add(accept_limit, TICKET);
	accept_limit->look_ns = 0; /* if it is locked: there is one now */
}

void accept_limit_empty(struct accept_limit *accept_limit)
{
	accept_limit->locked = false;
}

uint64_t accept_limit_look_ns(const struct accept_limit *accept_limit, uint64_t now_ns)
{
	if (!accept_limit->locked)
		return UINT64_MAX;
	return now_ns < accept_limit->free_until_ns || accept_limit->look_ns < now_ns ? now_ns : accept_limit->look_ns;
}
