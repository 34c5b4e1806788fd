/*
 * Seeded worlds: whatever the network and the switches do, no sum is wrong, no job hangs, no owner holds more than it may.
 *
 *     switch_seeds_test [--seed FIRST] [--count N] [--large N]    --large: worlds of up to 16 workers and thousands of slots
 */
#define TEST_OPTIONS "--seed", "--count", "--large"
#include "base/check.h"
#include "world.h"

static void print(const struct world_totals *totals)
{
	printf("%" PRIu64 " runs, %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64 " changed, %" PRIu64 " forged, %" PRIu64 " of unregistered members; longest %.1f s\n",
	       totals->runs, totals->packets, totals->lost, totals->corrupted, totals->forged, totals->unregistered, totals->longest_s);
	for (int i = 0; i < WORLD_FAULTS; i++)
		printf("  %-24s %" PRIu64 " runs\n", world_fault_name((enum world_fault)i), totals->faults[i]);
	for (int i = 0; i < STEP_EVENTS; i++)
		printf("  %-3s%-21s %" PRIu64 "\n", step_event_rule((enum step_event)i), step_event_name((enum step_event)i), totals->step[i]);
	for (int i = 0; i < OWNER_EVENTS; i++)
		printf("  owner: %-17s %" PRIu64 "\n", owner_event_name((enum owner_event)i), totals->owner[i]);
	printf("  results %" PRIu64 ", repeated %" PRIu64 ", refused %" PRIu64 ", asks %" PRIu64 "; resends %" PRIu64 ", bypasses %" PRIu64 " (fast %" PRIu64 ", time-outs %" PRIu64 ")\n",
	       totals->results, totals->repeated, totals->refused, totals->asks, totals->resends, totals->bypasses, totals->fast, totals->timeouts);
	printf("  elements %" PRIu64 ", owners added %" PRIu64 " of %" PRIu64 " contributions one by one\n", totals->elements, totals->taken, totals->contributions);
	printf("  switches became alive %" PRIu64 " times, gone %" PRIu64 " times; marks %" PRIu64 ", halvings %" PRIu64 "; failed jobs %" PRIu64 "\n",
	       totals->alive, totals->gone, totals->marks, totals->halvings, totals->failed_jobs);
	fflush(stdout);
}

/* Many worlds have met every rule and every fault; else they prove less than they say. */
static void check_covered(const struct world_totals *totals)
{
	for (int i = 0; i < STEP_EVENTS; i++)
		if (i != STEP_TOO_LONG && i != STEP_NOT_MINE) /* no element is too long here, and drivers keep hellos for themselves */
			CHECK_MSG(totals->step[i] >= totals->runs, "%s: only %" PRIu64, step_event_name((enum step_event)i), totals->step[i]);
	for (int i = 0; i < OWNER_EVENTS; i++)
		CHECK_MSG(totals->owner[i] >= totals->runs || i == OWNER_FULL || i == OWNER_FORGOTTEN || i == OWNER_COMPLETE, "owner, %s: only %" PRIu64, owner_event_name((enum owner_event)i), totals->owner[i]);
	CHECK(totals->fast >= totals->runs && totals->timeouts >= totals->runs && totals->asks >= totals->runs && totals->gone >= totals->runs);
	for (int i = 0; i < WORLD_FAULTS; i++)
		CHECK_MSG(totals->faults[i] * 10 >= totals->runs, "%s: only in %" PRIu64 " runs", world_fault_name((enum world_fault)i), totals->faults[i]);
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
	CHECK_U64(totals.step[STEP_COLLIDED] + totals.step[STEP_RECLAIMED] + totals.owner[OWNER_OVERLAPS] + totals.owner[OWNER_REFUSED], 0);
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
	return 0;
}
