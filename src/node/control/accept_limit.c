#include "node/control/accept_limit.h"

#define TOKEN UINT64_C(1000000)

void accept_limit_init(struct accept_limit *accept_limit, uint64_t connections, uint64_t now_ns)
{
	uint64_t most = (connections + ACCEPT_LIMIT_SPARE) * TOKEN;

	*accept_limit = (struct accept_limit){
		.most = most, .tokens = most, .grown_ns = now_ns, .free_until_ns = UINT64_MAX,
	};
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

static void add(struct accept_limit *accept_limit, uint64_t tokens)
{
	uint64_t room = accept_limit->most - accept_limit->tokens;

	accept_limit->tokens += tokens < room ? tokens : room;
}

/* Adds the tokens of the time that has passed. A rest too short for a millionth of a token counts next time. */
static void grow(struct accept_limit *accept_limit, uint64_t now_ns)
{
	/* The time in which the whole bucket grows back: more than that need not be counted. */
	uint64_t most = accept_limit->most / ACCEPT_LIMIT_RATE * (NS_PER_S / TOKEN) + NS_PER_S;
	uint64_t passed = now_ns > accept_limit->grown_ns ? now_ns - accept_limit->grown_ns : 0;

	add(accept_limit, (passed < most ? passed : most) / (NS_PER_S / TOKEN) * ACCEPT_LIMIT_RATE);
	accept_limit->grown_ns += passed - passed % (NS_PER_S / TOKEN);
}

bool accept_limit_admits(struct accept_limit *accept_limit, uint64_t now_ns)
{
	if (now_ns < accept_limit->free_until_ns)
		return true;
	/* While locked, tokens are spent in batches: one at a time would wake the control thread for each connection. */
	if (accept_limit->locked && now_ns < accept_limit->batch_ns)
		return false;
	grow(accept_limit, now_ns);
	if (accept_limit->tokens >= TOKEN)
		return true;
	accept_limit->locked = true;
	accept_limit->batch_ns = now_ns + ACCEPT_LIMIT_PAUSE_NS;
	return false;
}

void accept_limit_take(struct accept_limit *accept_limit, uint64_t now_ns)
{
	if (now_ns >= accept_limit->free_until_ns)
		accept_limit->tokens -= TOKEN;
}

void accept_limit_proved(struct accept_limit *accept_limit)
{
	add(accept_limit, TOKEN);
	accept_limit->batch_ns = 0; /* if it is locked: there is a token now */
}

void accept_limit_empty(struct accept_limit *accept_limit)
{
	accept_limit->locked = false;
}

uint64_t accept_limit_due_ns(const struct accept_limit *accept_limit, uint64_t now_ns)
{
	if (!accept_limit->locked)
		return UINT64_MAX;
	return now_ns < accept_limit->free_until_ns || accept_limit->batch_ns < now_ns ? now_ns : accept_limit->batch_ns;
}
