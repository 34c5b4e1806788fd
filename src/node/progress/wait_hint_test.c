/*
 * wait_hint_test.c - calls are expected to be waited for only after prompt waits, and after each miss only after more of them.
 */
#include "node/progress/wait_hint.h"

#include "base/check.h"

static uint64_t now = NS_PER_S;

static void wait_after(struct wait_hint *habit, uint64_t ns)
{
	uint64_t started = now;

	now += ns;
	wait_hint_wait(habit, started, now);
	now += 10 * NS_PER_US;
	wait_hint_leave(habit, now);
}

/* Prompt waits until the next call is expected to be waited for. */
static uint32_t form(struct wait_hint *habit)
{
	uint32_t waits = 0;

	for (; !wait_hint_expects(habit); waits++)
		wait_after(habit, NS_PER_US);
	return waits;
}

int main(void)
{
	struct wait_hint habit = {0};

	CHECK(!wait_hint_expects(&habit));
	for (int i = 0; i < 100; i++) { /* who computes first forms no habit */
		wait_after(&habit, NS_PER_MS);
		CHECK(!wait_hint_expects(&habit));
	}
	CHECK_U64(form(&habit), WAIT_HINT_LEAST);

	/* One that comes late costs something, but not everything: it may have been kept from its core. */
	for (int i = 0; i < 10; i++)
		wait_after(&habit, NS_PER_US);
	wait_after(&habit, NS_PER_MS);
	CHECK(wait_hint_expects(&habit));
	for (int i = 0; i < 10; i++)
		wait_after(&habit, NS_PER_MS);
	CHECK(!wait_hint_expects(&habit));
	(void)form(&habit);

	/* Several that were started together, and are waited for one after the other. */
	uint64_t started = now;
	for (int i = 0; i < 100; i++) {
		now += NS_PER_US;
		wait_hint_wait(&habit, started, now);
		now += NS_PER_MS;
		wait_hint_leave(&habit, now);
		CHECK(wait_hint_expects(&habit));
	}

	/* Every miss doubles what is needed, up to a point. */
	for (uint32_t needed = 2 * WAIT_HINT_LEAST; needed <= WAIT_HINT_MOST; needed *= 2) {
		wait_hint_miss(&habit);
		CHECK(!wait_hint_expects(&habit));
		CHECK_U64(form(&habit), needed);
	}
	for (int i = 0; i < 5; i++) {
		wait_hint_miss(&habit);
		CHECK_U64(form(&habit), WAIT_HINT_MOST);
	}

	/* And is forgiven in time. */
	for (uint32_t i = 0; i < 3 * WAIT_HINT_MOST; i++) {
		CHECK(wait_hint_expects(&habit));
		wait_after(&habit, NS_PER_US);
	}
	wait_hint_miss(&habit);
	CHECK_U64(form(&habit), 2 * WAIT_HINT_LEAST);
	return 0;
}
