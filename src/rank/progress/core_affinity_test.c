#include "rank/progress/core_affinity.h"

#include "base/check.h"
#include "base/rng.h"

/* Places are spread evenly over the cores that are allowed, whichever these are. */
static void cores(struct rng *rng)
{
	for (int i = 0; i < 200; i++) {
		uint32_t on_core[CPU_SETSIZE] = {0};
		uint32_t count = 2 + (uint32_t)rng_below(rng, 30), rounds = 1 + (uint32_t)rng_below(rng, 4);
		cpu_set_t allowed;

		CPU_ZERO(&allowed);
		while ((uint32_t)CPU_COUNT(&allowed) < count)
			CPU_SET((size_t)rng_below(rng, CPU_SETSIZE), &allowed);
		for (uint32_t place = 0; place < rounds * count; place++) {
			int core = seat_core(&allowed, place);

			CHECK(core >= 0 && CPU_ISSET((size_t)core, &allowed));
			on_core[core]++;
		}
		for (uint32_t core = 0; core < CPU_SETSIZE; core++)
			CHECK_U64(on_core[core], CPU_ISSET((size_t)core, &allowed) ? rounds : 0);
	}
	cpu_set_t one;
	CPU_ZERO(&one);
	CHECK(seat_core(&one, 3) == -1);
	CPU_SET(5, &one);
	CHECK(seat_core(&one, 3) == -1);
}

/* Who is moved away again and again gives in; who is left alone looks as often as at first. */
static void patience(void)
{
	struct core_seat seat;
	uint64_t now = 7 * NS_PER_S;

	seat_init(&seat, true, 1);
	seat_looked(&seat, true, now);
	CHECK_U64(seat.look_ns, now + SEAT_PATIENCE_LEAST);
	for (uint64_t wait = 2 * SEAT_PATIENCE_LEAST; wait < SEAT_PATIENCE_MOST; wait *= 2) {
		seat_looked(&seat, true, now);
		CHECK_U64(seat.look_ns, now + wait);
	}
	for (int i = 0; i < 5; i++) {
		seat_looked(&seat, true, now);
		CHECK_U64(seat.look_ns, now + SEAT_PATIENCE_MOST);
	}
	for (int i = 0; i < 20; i++)
		seat_looked(&seat, false, now);
	CHECK_U64(seat.look_ns, now + SEAT_PATIENCE_LEAST);
}

/* The thread goes there, and may run where it might before. */
static void going(void)
{
	cpu_set_t before, after;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (uint32_t place = 0; place < 4; place++) {
		struct core_seat seat;

		seat_init(&seat, true, place);
		for (uint32_t i = 0; i < SEAT_RESTS - 1; i++) {
			seat_rest(&seat);
			seat_leave(&seat); /* waits were short */
		}
		CHECK_U64(seat.look_ns, 0);
		seat_rest(&seat);
		CHECK(!seat.is_held);
		CHECK(seat.look_ns > 0);
		CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
		seat.look_ns = UINT64_MAX;
		seat_keep(&seat);
		CHECK(seat.look_ns == UINT64_MAX); /* not yet */
	}
	/* Now and then the system moves it at once; that it goes nowhere by itself is seen all the same. */
	uint32_t went = 0, tries = CPU_COUNT(&before) > 1 ? 100 : 0;
	for (uint32_t i = 0; i < tries; i++) {
		struct core_seat seat;
		int core = sched_getcpu();

		seat_init(&seat, true, i);
		while (seat_core(&before, seat.place) == core)
			seat.place++;
		seat_keep(&seat);
		went += sched_getcpu() == seat_core(&before, seat.place);
	}
	CHECK(went >= tries / 10);
	struct core_seat none;
	seat_init(&none, false, 1);
	for (uint32_t i = 0; i < 2 * SEAT_RESTS; i++)
		seat_rest(&none);
	CHECK_U64(none.look_ns, 0);
}

/* Who waits for long stays in its seat as long as that, and then may run where it might before. */
static void staying(void)
{
	cpu_set_t before, within, after;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (uint32_t place = 0; place < 8; place++) {
		struct core_seat seat;
		bool has_choice = CPU_COUNT(&before) > 1;

		seat_init(&seat, true, place);
		for (uint32_t i = 0; i < SEAT_RESTS_LONG - 1; i++)
			seat_rest(&seat);
		CHECK(!seat.is_held);
		for (uint32_t i = 0; i < 3 * SEAT_RESTS; i++) {
			seat_rest(&seat);
			CHECK(seat.is_held == has_choice);
		}
		CHECK(sched_getaffinity(0, sizeof(within), &within) == 0);
		if (has_choice) {
			CHECK(CPU_COUNT(&within) == 1 && CPU_ISSET((size_t)seat_core(&before, place), &within));
			CHECK(sched_getcpu() == seat_core(&before, place));
		}
		seat_leave(&seat);
		CHECK(!seat.is_held);
		CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
	}
}

/* What somebody else sets meanwhile stays as it is. */
static void respect(void)
{
	cpu_set_t before, other, after;
	struct core_seat seat;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	if (CPU_COUNT(&before) < 2)
		return;
	seat_init(&seat, true, 0);
	seat_hold(&seat);
	seat_hold(&seat); /* which is nothing new */
	CHECK(seat.is_held && CPU_EQUAL(&seat.allowed, &before));
	CPU_ZERO(&other);
	CPU_SET((size_t)seat_core(&before, 1), &other);
	CHECK(sched_setaffinity(0, sizeof(other), &other) == 0);
	seat_leave(&seat);
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&other, &after));
	CHECK(sched_setaffinity(0, sizeof(before), &before) == 0);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	cores(&rng);
	patience();
	going();
	staying();
	respect();
	return 0;
}
