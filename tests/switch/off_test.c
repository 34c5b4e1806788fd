/*
 * Worlds with a rule of docs/protocol/atp.md switched off, each beside the same worlds with all rules: what the rule is for.
 */
#include "base/check.h"
#include "world.h"

#define RUNS 50u

static struct world_totals run(enum world_off off, bool is_plain)
{
	struct world_totals totals = {0};

	for (uint64_t seed = 1; seed <= RUNS; seed++)
		world_run(&(struct world_options){.seed = seed, .off = off, .is_plain = is_plain, .is_shut = !is_plain}, &totals);
	printf("rule %d off, %u runs: %" PRIu64 " wrong sums, %" PRIu64 " without an end, %" PRIu64 " slots held\n", (int)off,
	       RUNS, totals.wrong, totals.hangs, totals.leaked);
	return totals;
}

int main(void)
{
	struct world_totals all = run(OFF_NOTHING, true), bad = run(OFF_NOTHING, false);

	CHECK(all.wrong + all.leaked + bad.wrong + bad.hangs == 0);
	CHECK(bad.longest_s < 1000);
	/* leak: slots of complete numbers are held until another number finds them old */
	CHECK(run(OFF_S6, true).leaked > 1000);
	CHECK(run(OFF_O1, true).wrong > 100);
	/* no progress: a member that lost a result never gets it */
	CHECK(run(OFF_O2, false).hangs > RUNS / 10);
	return 0;
}
