/*
 * A switch that is killed at random moments of a long job, and started anew: it helps again within 200 ms, no sum is
 * wrong, and no call stands still for long. In virtual time; scripts/soak does the same to a running job.
 *
 *
        switch_restarts_test [--seed N] [--kills N]
 */
#define TEST_OPTIONS "--seed", "--kills"
#include "base/check.h"
#include "world.h"

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), kills = test_option(argc, argv, "--kills", 100);
	struct world_totals totals = {0};

	world_run(&(struct world_options){.seed = seed, .is_plain = true, .kills = (uint32_t)kills}, &totals);
	printf("%" PRIu64 " kills in %.1f s: from 200 ms after a start to the next kill the switch summed %.4f of the"
	       " contributions at least; the longest stall took %.1f ms; it was gone %" PRIu64 " times\n", kills,
	       totals.longest_s, totals.least_before, totals.stall_s * 1e3, totals.gone);
	CHECK(totals.killed == kills);
	CHECK(totals.least_before >= 0.99);
	CHECK(totals.stall_s <= 0.1);
	return 0;
}
