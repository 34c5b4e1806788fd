/*
 * The lanes of a hub, or of several, and 1 to 64 workers over thousands of seeds: in any order of the pieces of messages, the weights have the bits
 * of a plain reference; and a death is one trouble that names the worker.
 */
#define TEST_OPTIONS "--seed", "--seeds"
#include "base/check.h"
#include "store_pump.h"

#define SEEDS 10000u

static struct job job;
static struct pump pump;
static uint64_t seed_now;

/* A failed check ends the program: the seed by which to replay it. */
static void tell_seed(void)
{
	if (seed_now != UINT64_MAX)
		fprintf(stderr, "seed %" PRIu64 " (--seed %" PRIu64 " --seeds 1)\n", seed_now, seed_now);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--seeds", SEEDS);
	uint64_t fates[PUMP_LEAVE + 1] = {0}, failed = 0, steps = 0;

	atexit(tell_seed);
	for (seed_now = first; seed_now < first + count; seed_now++) {
		job_draw(&job, seed_now);
		pump_init(&pump, &job, seed_now);
		pump_run(&pump);
		pump_check_end(&pump);
		fates[pump.fate]++;
		failed += pump.trouble != ESP_OK;
		steps += pump.steps;
		pump_fini(&pump);
		job_fini(&job);
	}
	seed_now = UINT64_MAX;
	printf("%" PRIu64 " jobs: calm %" PRIu64 ", killed %" PRIu64 ", cut %" PRIu64 ", mismatch %" PRIu64 ", left %" PRIu64
	       "; %" PRIu64 " failed; %" PRIu64 " steps\n", count, fates[0], fates[1], fates[2], fates[3], fates[4], failed, steps);
	return 0;
}
