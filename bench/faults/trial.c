#include "trial.h"

#include <string.h>

#include "base/clock.h"
#include "base/rng.h"

const char *const way_names[WAY_COUNT + 1] = {"kill", "stop", NULL};
const char *const phase_names[PHASE_COUNT + 1] = {"joining", "connecting",   "idle",       "late",   "calls", "first-chunk",
                                                  "middle-chunk", "last-chunk", "shrink", "leaving", NULL};

/* The number-th of those that are wanted, of which there is one at least; number counts on, round and round. */
static uint32_t pick(const bool *wanted, uint32_t count, uint64_t *number)
{
	uint32_t choices = 0, at = 0;

	for (uint32_t i = 0; i < count; i++)
		choices += wanted[i];
	if (choices == 0)
		return 0;
	uint64_t skip = *number % choices;
	*number /= choices;
	for (; skip > 0 || !wanted[at]; at++)
		skip -= wanted[at];
	return at;
}

/* How long a phase lasts about, in which the moment is drawn. */
static uint64_t phase_ns(enum phase phase, uint32_t size)
{
	switch (phase) {
	case PHASE_JOINING:
		return size * 5 * NS_PER_MS;
	case PHASE_CONNECTING:
	case PHASE_SHRINK:
	case PHASE_LEAVING:
		return size * NS_PER_MS;
	case PHASE_FIRST:
	case PHASE_MIDDLE:
	case PHASE_LAST:
		return 100 * NS_PER_US;
	default:
		return 30 * NS_PER_MS;
	}
}

static bool has_chunks(enum phase phase)
{
	return phase == PHASE_FIRST || phase == PHASE_MIDDLE || phase == PHASE_LAST;
}

/* Seeds that follow each other go through all kinds in turn, so that each has as many runs. */
void trial_draw(const struct trial_range *range, uint64_t seed, struct trial *trial)
{
	const bool transports[] = {range->shm, range->tcp};
	uint64_t number = seed;
	struct rng rng;

	rng_init(&rng, seed);
	*trial = (struct trial){.seed = seed, .liveness_ms = range->liveness_ms, .join_seconds = range->join_seconds};
	trial->phase = (enum phase)pick(range->phases, PHASE_COUNT, &number);
	trial->way = (enum way)pick(range->ways, WAY_COUNT, &number);
	trial->is_tcp = pick(transports, 2, &number) == 1;
	trial->size = range->ranks[number % range->rank_count];
	trial->victim = rng_chance(&rng, 1, 3) ? 0 : (uint32_t)rng_below(&rng, trial->size);
	trial->first_victim = UINT32_MAX;
	if (trial->phase == PHASE_SHRINK && trial->size > 2 && rng_chance(&rng, 1, 2))
		trial->first_victim = (trial->victim + 1 + (uint32_t)rng_below(&rng, trial->size - 1)) % trial->size;
	trial->target_call = trial->phase == PHASE_CONNECTING ? 1 : 2 + (uint32_t)rng_below(&rng, 4);
	trial->count = has_chunks(trial->phase) ? 262144 + rng_below(&rng, 262144)
	               : rng_chance(&rng, 1, 2) ? 1 + rng_below(&rng, 1000)
	                                        : 1 + rng_below(&rng, 200000);
	/* More often early than late: how long a phase lasts depends on the machine, and after its end the moment is missed. */
	trial->delay_ns = rng_below(&rng, 1 + rng_below(&rng, phase_ns(trial->phase, trial->size)));
	trial->from_alloc = rng_chance(&rng, 1, 2);
}
