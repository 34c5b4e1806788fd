/*
 * grow_time_test.c - whatever its parts take, a call by which a group grows ends by its deadline, in virtual time.
 */
#include "rank/member/grow_time.h"

#include "base/check.h"
#include "base/clock.h"

enum { CASES = 5 };

static const uint64_t wholes[CASES] = {NS_PER_MS, NS_PER_S, 5 * NS_PER_S, 60 * NS_PER_S, 86400 * NS_PER_S};
static const uint64_t intervals[CASES] = {100 * NS_PER_MS, NS_PER_S, 2 * NS_PER_S, 10 * NS_PER_S, 86400 * NS_PER_S};
static const uint64_t begun = 1234 * NS_PER_S;

/* Joining and what follows it takes all the time that each part has. When it is over. */
static uint64_t take_all(const struct grow_time *time, uint64_t now, enum grow_part first)
{
	for (int part = (int)first; part <= GROW_AGREE; part++) {
		uint64_t left = grow_time_left(time, (enum grow_part)part, now);

		CHECK(left > 0);
		now += left;
	}
	return now;
}

static void check_case(uint64_t whole, uint64_t interval)
{
	struct grow_time time;

	grow_time_begin(&time, (int64_t)whole, interval, begun);
	uint64_t slack = grow_time_slack(&time);
	CHECK(slack <= interval / 5 + 1 && slack <= whole / 8 + 1);
	CHECK_U64((uint64_t)grow_time_to_come(&time, begun), whole);
	CHECK_U64((uint64_t)grow_time_to_come(&time, begun + whole), 1);
	/* A joiner that is stopped leaves time for the others to come, and to join. */
	CHECK(grow_time_to_count(&time, interval / 10, begun) <= whole / 4 &&
	      grow_time_to_count(&time, interval / 10, begun) <= interval / 10);
	CHECK_U64(grow_time_to_count(&time, interval / 10, begun + whole), 0);
	grow_time_all_here(&time, 7 * whole, begun + whole / 8); /* which is the setting's business, and not this call's */
	CHECK_U64(time.end_ns, begun + whole);
	for (int first = GROW_JOIN; first <= GROW_AGREE; first++)
		CHECK_U64(take_all(&time, begun, (enum grow_part)first), begun + whole);
	/* More than half of it is for joining. */
	CHECK(grow_time_left(&time, GROW_JOIN, begun) > whole / 2);
	/* All have come at the last moment: they cannot join, and that is voted and agreed upon. */
	uint64_t now = begun + whole;
	now += grow_time_left(&time, GROW_JOIN, now);
	now += grow_time_left(&time, GROW_VOTE, now);
	now += grow_time_left(&time, GROW_AGREE, now);
	CHECK_U64(now, begun + whole + slack);
}

static void test_deadline(void)
{
	for (unsigned i = 0; i < CASES; i++) {
		for (unsigned j = 0; j < CASES; j++)
			check_case(wholes[i], intervals[j]);
	}
}

/* A rank that is stopped when all have joined is noticed before time is over. */
static void test_interval(void)
{
	struct grow_time time;

	grow_time_begin(&time, (int64_t)(60 * NS_PER_S), 10 * NS_PER_S, begun);
	uint64_t now = begun + grow_time_left(&time, GROW_JOIN, begun);
	now += grow_time_left(&time, GROW_VOTE, now);
	now += grow_time_left(&time, GROW_ENTER, now);
	CHECK(grow_time_left(&time, GROW_AGREE, now) >= 10 * NS_PER_S);
}

/* Others may come as late as to any call; from then on it is the setting that counts. */
static void test_no_deadline(void)
{
	struct grow_time time;
	uint64_t late = begun + 200 * NS_PER_S;

	grow_time_begin(&time, 0, 10 * NS_PER_S, begun);
	CHECK_U64((uint64_t)grow_time_to_come(&time, late), 0);
	CHECK_U64(grow_time_to_count(&time, NS_PER_S, late), NS_PER_S);
	grow_time_all_here(&time, 60 * NS_PER_S, late);
	CHECK_U64(take_all(&time, late, GROW_JOIN), late + 60 * NS_PER_S);
}

int main(void)
{
	test_deadline();
	test_interval();
	test_no_deadline();
	return 0;
}
