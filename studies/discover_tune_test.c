/*
 * Retuning in virtual time: a machine that slows down is relieved within two steps of the trigger, the plan
 * then takes little more than the slow link's minimum, and bytes are even again after it has recovered. Without
 * changes nothing happens.
 */
#include "studies/discover_tune.h"

#include <string.h>

#include "base/check.h"

#define STEPS 26u

static const struct autotune_config usual = {
	.machines = 8, .racks = 1, .rate = 5e9 / 8, .slow = 0.4, .slow_from = 3, .slow_to = 13, .steps = STEPS,
	    .load = {16 << 20, 32 << 10}};

static void test_slow(void)
{
	struct autotune_step steps[STEPS] = {0}, again[STEPS] = {0};
	struct error err = {0};
	uint32_t trigger = usual.slow_from;

	CHECK_MSG(autotune_run(&usual, steps, &err) == ESP_OK, "%s", err.text);
	CHECK(autotune_run(&usual, again, &err) == ESP_OK && test_same_bits(steps, again, sizeof steps));
	while (trigger < STEPS && steps[trigger].report.act == TUNE_NOTHING)
		trigger++;
	CHECK(trigger <= usual.slow_from + 2 && steps[trigger].report.act == TUNE_QUICK);
	CHECK_U64(steps[trigger].report.slowest, 7);
	for (uint32_t i = trigger + 1; i < usual.slow_to; i++) {
		/* All data of the slow machine has to pass its link once each way. */
		double bound = (double)usual.load.bytes / (usual.rate * usual.slow);

		CHECK_MSG(steps[i].even / steps[i].tuned >= 1.27, "step %u: %g s, even masters %g s", i, steps[i].tuned,
		          steps[i].even);
		CHECK(steps[i].tuned >= bound && steps[i].tuned <= 1.15 * bound);
	}
	CHECK(steps[STEPS - 1].balance < 1.05);
	CHECK(steps[STEPS - 1].tuned < 1.05 * steps[0].tuned);
}

static void test_steady(void)
{
	struct autotune_config config = usual;
	struct autotune_step steps[STEPS];
	struct error err = {0};

	config.slow_from = config.slow_to = 0;
	for (config.racks = 1; config.racks <= 2; config.racks++) {
		CHECK_MSG(autotune_run(&config, steps, &err) == ESP_OK, "%s", err.text);
		for (uint32_t i = 0; i < STEPS; i++)
			CHECK_MSG(steps[i].tuned <= 1.02 * steps[i].even, "%u racks, step %u: %g s, even masters %g s",
			          config.racks, i, steps[i].tuned, steps[i].even);
	}
}

static void test_refused(void)
{
	struct autotune_step steps[STEPS];
	struct autotune_config wrong[4] = {usual, usual, usual, usual};
	struct error err = {0};

	wrong[0].machines = 1;
	wrong[1].racks = 9;
	wrong[2].slow = 0;
	wrong[3].slow_to = 1;
	for (int i = 0; i < 4; i++)
		CHECK_MSG(autotune_run(&wrong[i], steps, &err) == ESP_EINVAL, "case %d was taken", i);
}

int main(void)
{
	test_slow();
	test_steady();
	test_refused();
	return 0;
}
