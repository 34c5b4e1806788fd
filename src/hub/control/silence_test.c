/* Silence in virtual time. */
#include "hub/control/silence.h"

#include "base/check.h"

#define BEGIN (1000 * NS_PER_S)

static void test_asked_then_dead(void)
{
	struct silence silence;

	silence_heard(&silence, BEGIN);
	CHECK(silence_look(&silence, BEGIN + 3 * NS_PER_S, SILENCE_MOST) == SILENCE_FINE);
	CHECK(silence_next(&silence, SILENCE_MOST) == BEGIN + 3 * NS_PER_S + 1);
	CHECK(silence_look(&silence, BEGIN + 3 * NS_PER_S + 1, SILENCE_MOST) == SILENCE_ASKS);
	CHECK(silence_look(&silence, BEGIN + 10 * NS_PER_S, SILENCE_MOST) == SILENCE_FINE);
	CHECK(silence_next(&silence, SILENCE_MOST) == BEGIN + 10 * NS_PER_S + 2);
	CHECK(silence_look(&silence, BEGIN + 10 * NS_PER_S + 2, SILENCE_MOST) == SILENCE_DEAD);
}

static void test_answer(void)
{
	struct silence silence;

	silence_heard(&silence, BEGIN);
	CHECK(silence_look(&silence, BEGIN + 4 * NS_PER_S, SILENCE_MOST) == SILENCE_ASKS);
	silence_heard(&silence, BEGIN + 9 * NS_PER_S);
	CHECK(silence_look(&silence, BEGIN + 11 * NS_PER_S, SILENCE_MOST) == SILENCE_FINE);
	CHECK(silence_look(&silence, BEGIN + 13 * NS_PER_S, SILENCE_MOST) == SILENCE_ASKS);
}

/* A caller that stood still for a minute asks, and gives time for the answer. */
static void test_own_pause(void)
{
	struct silence silence;

	silence_heard(&silence, BEGIN);
	CHECK(silence_look(&silence, BEGIN + 60 * NS_PER_S, SILENCE_MOST) == SILENCE_ASKS);
	CHECK(silence_look(&silence, BEGIN + 61 * NS_PER_S, SILENCE_MOST) == SILENCE_FINE);
	CHECK(silence_look(&silence, BEGIN + 67 * NS_PER_S, SILENCE_MOST) == SILENCE_FINE);
	CHECK(silence_look(&silence, BEGIN + 67 * NS_PER_S + 1, SILENCE_MOST) == SILENCE_DEAD);
}

static void test_patience(void)
{
	struct silence silence;
	uint64_t most = 600 * NS_PER_S;

	silence_heard(&silence, BEGIN);
	CHECK(silence_look(&silence, BEGIN + 4 * NS_PER_S, most) == SILENCE_ASKS);
	CHECK(silence_look(&silence, BEGIN + most, most) == SILENCE_FINE);
	CHECK(silence_look(&silence, BEGIN + most + 1, most) == SILENCE_DEAD);
	CHECK(silence_look(&silence, UINT64_MAX - 1, UINT64_MAX) == SILENCE_FINE);
	CHECK(silence_next(&silence, UINT64_MAX) == UINT64_MAX);
}

static void test_little_patience(void)
{
	struct silence silence;

	silence_heard(&silence, BEGIN);
	CHECK(silence_look(&silence, BEGIN + NS_PER_S + 1, 3 * NS_PER_S) == SILENCE_ASKS);
	CHECK(silence_look(&silence, BEGIN + 3 * NS_PER_S, 3 * NS_PER_S) == SILENCE_FINE);
	CHECK(silence_look(&silence, BEGIN + 3 * NS_PER_S + 2, 3 * NS_PER_S) == SILENCE_DEAD);
}

int main(void)
{
	test_asked_then_dead();
	test_answer();
	test_own_pause();
	test_patience();
	test_little_patience();
	return 0;
}
