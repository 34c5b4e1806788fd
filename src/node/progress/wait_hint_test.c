/*
 * wait_hint_test.c - waits are predicted only after prompt waits, and after each miss only after more of them.
 */
#include "node/progress/wait_hint.h"

#include "base/check.h"

static uint64_t now = NS_PER_S;

static void wait_after(struct wait_hint *hint, uint64_t ns)
{
	uint64_t started = now;

	now += ns;
	wait_hint_wait(hint, started, now);
	now += 10 * NS_PER_US;
	wait_hint_leave(hint, now);
}

/* Waits promptly until the next wait is predicted; returns the number of waits. */
static uint32_t wait_until_predicted(struct wait_hint *hint)
{
	uint32_t waits = 0;

	for (; !wait_hint_expects(hint); waits++)
		wait_after(hint, NS_PER_US);
	return waits;
}

int main(void)
{
	struct wait_hint hint = {0};

	CHECK(!wait_hint_expects(&hint));
	for (int i = 0; i < 100; i++) { /* a caller that computes first is never predicted to wait */
		wait_after(&hint, NS_PER_MS);
		CHECK(!wait_hint_expects(&hint));
	}
	CHECK_U64(wait_until_predicted(&hint), WAIT_HINT_LEAST);

	/* A late wait costs some prompt ones, but not all: the caller may have been kept from its core. */
	for (int i = 0; i < 10; i++)
		wait_after(&hint, NS_PER_US);
	wait_after(&hint, NS_PER_MS);
	CHECK(wait_hint_expects(&hint));
	for (int i = 0; i < 10; i++)
		wait_after(&hint, NS_PER_MS);
	CHECK(!wait_hint_expects(&hint));
	(void)wait_until_predicted(&hint);

	/* Several calls that were started together, and are waited for one after the other. */
	uint64_t started = now;
	for (int i = 0; i < 100; i++) {
		now += NS_PER_US;
		wait_hint_wait(&hint, started, now);
		now += NS_PER_MS;
		wait_hint_leave(&hint, now);
		CHECK(wait_hint_expects(&hint));
	}

	/* Every miss doubles the number of waits needed, up to a limit. */
	for (uint32_t needed = 2 * WAIT_HINT_LEAST; needed <= WAIT_HINT_MOST; needed *= 2) {
		wait_hint_miss(&hint);
		CHECK(!wait_hint_expects(&hint));
		CHECK_U64(wait_until_predicted(&hint), needed);
	}
	for (int i = 0; i < 5; i++) {
		wait_hint_miss(&hint);
		CHECK_U64(wait_until_predicted(&hint), WAIT_HINT_MOST);
	}

	/* Misses are made up for in time. */
	for (uint32_t i = 0; i < 3 * WAIT_HINT_MOST; i++) {
		CHECK(wait_hint_expects(&hint));
		wait_after(&hint, NS_PER_US);
	}
	wait_hint_miss(&hint);
	CHECK_U64(wait_until_predicted(&hint), 2 * WAIT_HINT_LEAST);
	return 0;
}
