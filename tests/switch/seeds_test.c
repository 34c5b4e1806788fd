/*
 * Seeded worlds: whatever the network and the switches do, no sum is wrong, no job hangs, no owner holds more than it
 * may.
 *
 *
        switch_seeds_test [--seed FIRST] [--count N] [--large N]    --large: worlds of up to 16 workers and thousands of slots
 */
#define TEST_OPTIONS "--seed", "--count", "--large"
#include "base/check.h"
#include "world.h"

static void print_counter(const char *group, const char *name, uint64_t count)
{
	printf("  %-8s %-28s %" PRIu64 "\n", group, name, count);
}

static void print(const struct world_totals *totals)
{
	printf("%" PRIu64 " runs, the longest %.1f s of virtual time\n", totals->runs, totals->longest_s);
	for (int i = 0; i < WORLD_FAULTS; i++)
		print_counter("runs", world_fault_name((enum world_fault)i), totals->faults[i]);
	print_counter("network", "packets", totals->packets);
	print_counter("network", "lost", totals->lost);
	print_counter("network", "changed", totals->corrupted);
	print_counter("network", "forged", totals->forged);
	print_counter("network", "of unregistered members", totals->unregistered);
	for (int i = 0; i < STEP_EVENTS; i++)
		print_counter(step_event_rule((enum step_event)i), step_event_name((enum step_event)i), totals->step[i]);
	for (int i = 0; i < OWNER_EVENTS; i++)
		print_counter("owner", owner_event_name((enum owner_event)i), totals->owner[i]);
	print_counter("owner", "elements", totals->elements);
	print_counter("owner", "contributions", totals->contributions);
	print_counter("owner", "of them added one by one", totals->taken);
	print_counter("member", "results", totals->results);
	print_counter("member", "repeated", totals->repeated);
	print_counter("member", "refused", totals->refused);
	print_counter("member", "resends", totals->resends);
	print_counter("member", "bypasses", totals->bypasses);
	print_counter("member", "after higher results", totals->fast);
	print_counter("member", "after a time-out", totals->timeouts);
	print_counter("member", "asks", totals->asks);
	print_counter("member", "marks", totals->marks);
	print_counter("member", "windows halved", totals->halvings);
	print_counter("member", "switch became alive", totals->alive);
	print_counter("member", "switch was gone", totals->gone);
	print_counter("member", "generations gone on to", totals->generations);
	print_counter("owner", "answers of a former one", totals->answered_former);
	print_counter("job", "failed", totals->failed_jobs);
	fflush(stdout);
}

/*
 * Many worlds have met every rule and every fault; else they prove less than they say. The 10,100 runs of the test
 * meet every rule more than 10,000 times.
 */
static void check_covered(const struct world_totals *totals)
{
	for (int i = 0; i < STEP_EVENTS; i++)
		/* drivers keep hellos for themselves */
		if (i != STEP_NOT_MINE)
			CHECK_MSG(totals->step[i] >= totals->runs, "%s: only %" PRIu64, step_event_name((enum step_event)i),
			          totals->step[i]);
	for (int i = 0; i < OWNER_EVENTS; i++)
		/* O5: two windows of elements always suffice */
		CHECK_MSG(i == OWNER_FULL ? totals->owner[i] == 0 : totals->owner[i] >= totals->runs,
		          "owner, %s: %" PRIu64, owner_event_name((enum owner_event)i), totals->owner[i]);
	CHECK(totals->fast >= totals->runs && totals->timeouts >= totals->runs && totals->asks >= totals->runs &&
	      totals->repeated >= totals->runs && totals->refused >= totals->runs && totals->resends >= totals->runs &&
	      totals->bypasses >= totals->runs && totals->gone >= totals->runs && totals->generations >= totals->runs &&
	      totals->answered_former >= totals->runs);
	for (int i = 0; i < WORLD_FAULTS; i++)
		CHECK_MSG(totals->faults[i] * 10 >= totals->runs, "%s: only in %" PRIu64 " runs",
		          world_fault_name((enum world_fault)i), totals->faults[i]);
}

/* On a sound network the switch adds everything, once members know it. */
static void test_plain(uint64_t seed)
{
	struct world_totals totals = {0};

	for (uint64_t i = 0; i < 50; i++)
		world_run(&(struct world_options){.seed = seed + i, .is_plain = true}, &totals);
	CHECK_U64(totals.resends + totals.bypasses + totals.refused, 0);
	/* Owners add what comes from members that are alone behind their switch, and nothing else. */
	CHECK(totals.taken <= totals.step[STEP_ALONE]);
	CHECK_U64(totals.step[STEP_COLLIDED] + totals.step[STEP_RECLAIMED] + totals.owner[OWNER_OVERLAPS] +
	          totals.owner[OWNER_REFUSED], 0);
}

/* A long way, without loss: once the first results are there, nothing is sent twice, and no window is halved. */
static void test_long_way(uint64_t seed, uint64_t trip_ms)
{
	struct world_totals totals = {0};

	for (uint64_t i = 0; i < 20; i++)
		world_run(&(struct world_options){.seed = seed + i, .is_plain = true, .trip_ns = trip_ms * 1000000 / 2}, &totals);
	printf("round trips of %" PRIu64 " ms to the switch: %" PRIu64 " sent again of %" PRIu64 ", %" PRIu64 " windows halved\n", trip_ms,
	       totals.resends + totals.bypasses, totals.results, totals.halvings);
	CHECK_U64(totals.halvings, 0);
	CHECK_MSG((totals.resends + totals.bypasses) * 50 <= totals.results, "%" PRIu64 " of %" PRIu64,
	          totals.resends + totals.bypasses, totals.results);
}

/* A member that is late at each call: nothing is lost, so hardly a window is halved (with time-outs as losses: 20 in each run). */
static void test_straggler(uint64_t seed, uint64_t late_ms)
{
	struct world_totals totals = {0};

	for (uint64_t i = 0; i < 20; i++)
		world_run(&(struct world_options){.seed = seed + i, .is_plain = true, .is_large = true, .late_ns = late_ms * 1000000},
		          &totals);
	printf("a member that is %" PRIu64 " ms late: %" PRIu64 " sent again of %" PRIu64 ", %" PRIu64 " windows halved\n", late_ms,
	       totals.resends + totals.bypasses, totals.results, totals.halvings);
	CHECK(totals.timeouts > 0);
	CHECK(totals.halvings <= totals.runs);
	CHECK((totals.resends + totals.bypasses) * 5 <= totals.results);
}

/* A path that is closed after the flow was opened: the switch is the only way, and it is enough. */
static void test_shut(uint64_t seed)
{
	struct world_totals totals = {0};

	for (uint64_t i = 0; i < 300; i++)
		world_run(&(struct world_options){.seed = seed + i, .is_shut = true}, &totals);
	printf("300 runs without a straight path, the longest %.1f s of virtual time\n", totals.longest_s);
	CHECK(totals.lost > 1000 && totals.resends > 1000);
	CHECK_U64(totals.runs, 300);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 10000);
	uint64_t large = test_option(argc, argv, "--large", count / 100);
	struct world_totals totals = {0};

	printf("seed %" PRIu64 "\n", seed);
	for (uint64_t i = 0; i < count; i++)
		world_run(&(struct world_options){.seed = seed + i}, &totals);
	for (uint64_t i = 0; i < large; i++)
		world_run(&(struct world_options){.seed = seed + i, .is_large = true}, &totals);
	print(&totals);
	if (count >= 1000)
		check_covered(&totals);
	test_plain(seed);
	test_long_way(seed, 20);
	test_long_way(seed, 120);
	test_long_way(seed, 500);
	test_straggler(seed, 30);
	test_straggler(seed, 300);
	test_shut(seed);
	return 0;
}
