/*
 * Lanes of a parameter hub and of its workers together: every answer has the bits of the reference, without faults and
 * with damaged frames or a node that dies; nothing waits for ever.
 */
#include "base/check.h"
#include "hub/world.h"

#define STEPS_MOST 5000000u

/* Did all go well? */
static bool run(uint64_t seed, const struct world_faults *faults)
{
	static struct world world;
	uint32_t steps = 0;

	world_open(&world, seed, faults);
	const uint32_t kill_at = faults->kills ? (uint32_t)rng_below(&world.rng, 2000) : UINT32_MAX;
	while (world_step(&world)) {
		CHECK(++steps < STEPS_MOST);
		if (steps == kill_at)
			world_kill(&world, (uint32_t)rng_below(&world.rng, world.workers + 1));
	}
	const bool is_well = world_check_end(&world);
	CHECK(is_well || faults->kills || faults->corrupt_one_in > 0);
	world_close(&world);
	return is_well;
}

int main(int argc, char **argv)
{
	static const struct world_faults none = {0}, damage = {.corrupt_one_in = 500}, death = {.kills = true};
	const uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 600);

	uint64_t damaged = 0, dead = 0;

	for (uint64_t seed = first; seed < first + count; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		fflush(stdout);
		run(seed, &none);
		damaged += !run(seed, &damage);
		dead += !run(seed, &death);
	}
	printf("ended early: %" PRIu64 " runs by a damaged frame, %" PRIu64 " by a death\n", damaged, dead);
	return 0;
}
