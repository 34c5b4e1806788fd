#include "node/progress/core_affinity.h"

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
			int core = core_affinity_core(&allowed, place);

			CHECK(core >= 0 && CPU_ISSET((size_t)core, &allowed));
			on_core[core]++;
		}
		for (uint32_t core = 0; core < CPU_SETSIZE; core++)
			CHECK_U64(on_core[core], CPU_ISSET((size_t)core, &allowed) ? rounds : 0);
	}
	cpu_set_t one;
	CPU_ZERO(&one);
	CHECK(core_affinity_core(&one, 3) == -1);
	CPU_SET(5, &one);
	CHECK(core_affinity_core(&one, 3) == -1);
}

/* A thread that is moved away again and again checks less often; one that stays checks as often as at first. */
static void patience(void)
{
	struct core_affinity affinity;
	uint64_t now = 7 * NS_PER_S;

	core_affinity_init(&affinity, true, 1);
	core_affinity_checked(&affinity, true, now);
	CHECK_U64(affinity.check_ns, now + CORE_AFFINITY_PATIENCE_LEAST);
	for (uint64_t wait = 2 * CORE_AFFINITY_PATIENCE_LEAST; wait < CORE_AFFINITY_PATIENCE_MOST; wait *= 2) {
		core_affinity_checked(&affinity, true, now);
		CHECK_U64(affinity.check_ns, now + wait);
	}
	for (int i = 0; i < 5; i++) {
		core_affinity_checked(&affinity, true, now);
		CHECK_U64(affinity.check_ns, now + CORE_AFFINITY_PATIENCE_MOST);
	}
	for (int i = 0; i < 20; i++)
		core_affinity_checked(&affinity, false, now);
	CHECK_U64(affinity.check_ns, now + CORE_AFFINITY_PATIENCE_LEAST);
}

/* The thread moves to its core, and may run where it might before. */
static void going(void)
{
	cpu_set_t before, after;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (uint32_t place = 0; place < 4; place++) {
		struct core_affinity affinity;

		core_affinity_init(&affinity, true, place);
		for (uint32_t i = 0; i < CORE_AFFINITY_RESTS - 1; i++) {
			core_affinity_rest(&affinity);
			core_affinity_leave(&affinity); /* waits were short */
		}
		CHECK_U64(affinity.check_ns, 0);
		core_affinity_rest(&affinity);
		CHECK(!affinity.is_held);
		CHECK(affinity.check_ns > 0);
		CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
		affinity.check_ns = UINT64_MAX;
		core_affinity_keep(&affinity);
		CHECK(affinity.check_ns == UINT64_MAX); /* not yet */
	}
	/* Now and then the system moves it away at once; the check counts moves that it would not make by itself. */
	uint32_t went = 0, tries = CPU_COUNT(&before) > 1 ? 100 : 0;
	for (uint32_t i = 0; i < tries; i++) {
		struct core_affinity affinity;
		int core = sched_getcpu();

		core_affinity_init(&affinity, true, i);
		while (core_affinity_core(&before, affinity.place) == core)
			affinity.place++;
		core_affinity_keep(&affinity);
		went += sched_getcpu() == core_affinity_core(&before, affinity.place);
	}
	CHECK(went >= tries / 10);
	struct core_affinity none;
	core_affinity_init(&none, false, 1);
	for (uint32_t i = 0; i < 2 * CORE_AFFINITY_RESTS; i++)
		core_affinity_rest(&none);
	CHECK_U64(none.check_ns, 0);
}

/* A thread that waits for long stays on its core as long as that, and then may run where it might before. */
static void staying(void)
{
	cpu_set_t before, within, after;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (uint32_t place = 0; place < 8; place++) {
		struct core_affinity affinity;
		bool has_choice = CPU_COUNT(&before) > 1;

		core_affinity_init(&affinity, true, place);
		for (uint32_t i = 0; i < CORE_AFFINITY_RESTS_LONG - 1; i++)
			core_affinity_rest(&affinity);
		CHECK(!affinity.is_held);
		for (uint32_t i = 0; i < 3 * CORE_AFFINITY_RESTS; i++) {
			core_affinity_rest(&affinity);
			CHECK(affinity.is_held == has_choice);
		}
		CHECK(sched_getaffinity(0, sizeof(within), &within) == 0);
		if (has_choice) {
			CHECK(CPU_COUNT(&within) == 1 && CPU_ISSET((size_t)core_affinity_core(&before, place), &within));
			CHECK(sched_getcpu() == core_affinity_core(&before, place));
		}
		core_affinity_leave(&affinity);
		CHECK(!affinity.is_held);
		CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
	}
}

/* An affinity that another thread sets meanwhile stays. */
static void respect(void)
{
	cpu_set_t before, other, after;
	struct core_affinity affinity;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	if (CPU_COUNT(&before) < 2)
		return;
	core_affinity_init(&affinity, true, 0);
	core_affinity_hold(&affinity);
	core_affinity_hold(&affinity); /* no effect */
	CHECK(affinity.is_held && CPU_EQUAL(&affinity.allowed, &before));
	CPU_ZERO(&other);
	CPU_SET((size_t)core_affinity_core(&before, 1), &other);
	CHECK(sched_setaffinity(0, sizeof(other), &other) == 0);
	core_affinity_leave(&affinity);
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
