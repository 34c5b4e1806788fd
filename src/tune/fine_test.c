/*
 * fine_test.c - Finetune on networks whose times follow from loads exactly.
 *
 *     fine_test [--seed N]
 */
#include "tune/fine.h"

#include "base/check.h"
#include "base/rng.h"

#define NODES 16u
#define UNIT 10000u /* bytes of a chunk's worth of load */

struct rig {
	struct plan_masters masters;
	uint64_t rates[NODES], bytes[NODES];
	struct tune_node nodes[NODES];
	uint32_t blame[NODES];
	bool tried[NODES];
	struct tune_fine fine;
};

static void rig_open(struct rig *rig, const uint32_t *group_of, uint32_t workers)
{
	struct error err;

	*rig = (struct rig){.fine = {0}};
	CHECK_MSG(plan_masters_init(&rig->masters, group_of, workers, 0, &err) == ESP_OK, "%s", err.text);
	for (uint32_t i = 0; i < workers; i++)
		rig->rates[i] = 10000000;
}

static double rig_time(const struct rig *rig, uint32_t node)
{
	return (double)plan_masters_load(&rig->masters, node) * UNIT / (double)rig->rates[node];
}

static double rig_longest(const struct rig *rig)
{
	double most = 0;

	for (uint32_t i = 0; i < rig->masters.workers; i++)
		most = rig_time(rig, i) > most ? rig_time(rig, i) : most;
	return most;
}

static struct tune_move rig_step(struct rig *rig)
{
	struct tune_scratch scratch = {rig->bytes, rig->blame, rig->tried};
	struct tune_sample sample = {rig->masters.workers, rig->nodes};
	struct tune_move move;

	for (uint32_t i = 0; i < sample.nodes; i++) {
		uint64_t bytes = plan_masters_load(&rig->masters, i) * UNIT;

		rig->nodes[i] = (struct tune_node){.sent_bytes = bytes, .received_bytes = bytes, .rtt_ns = 100000};
	}
	tune_fine_step(&rig->fine, &rig->masters, &sample, rig->rates, &scratch, &move);
	CHECK(plan_masters_fit(&rig->masters, rig->masters.group_of, sample.nodes, rig->masters.groups));
	return move;
}

static const uint32_t two_racks[8] = {0, 0, 0, 0, 1, 1, 1, 1};

/* Equal loads, where the paper divides by zero: no node is to blame more than others. */
static void test_equal(void)
{
	struct rig rig;

	rig_open(&rig, two_racks, 8);
	CHECK_U64(rig_step(&rig).moved, 0);
	for (uint32_t i = 1; i < 8; i++)
		CHECK_U64(rig.blame[i], rig.blame[0]);
	plan_masters_fini(&rig.masters);
}

/* 1, 2, 4 ... masters off a slow host, never onto it; then peace. */
static void test_slow(void)
{
	struct rig rig;
	uint32_t steps = 0, expected = 1;

	rig_open(&rig, two_racks, 8);
	rig.rates[2] = 4000000;
	for (struct tune_move move = rig_step(&rig); move.moved > 0; move = rig_step(&rig), steps++) {
		CHECK(move.to != 2 && steps < 40);
		if (move.from == 2) {
			CHECK(move.moved <= expected);
			expected *= 2;
		}
	}
	CHECK(expected >= 16);
	CHECK_U64(plan_masters_load(&rig.masters, 2), 64); /* it has no master left */
	for (int i = 0; i < 10; i++)
		CHECK_U64(rig_step(&rig).moved, 0);
	/* It recovers: masters come back until loads are within 5 %. */
	rig.rates[2] = 10000000;
	for (steps = 0; rig_step(&rig).moved > 0; steps++)
		CHECK(steps < 40);
	for (uint32_t i = 0; i < 8; i++) {
		for (uint32_t k = 0; k < 8; k++)
			CHECK(plan_masters_load(&rig.masters, i) * 100 <= plan_masters_load(&rig.masters, k) * 105);
	}
	printf("balanced again after %u steps\n", steps);
	plan_masters_fini(&rig.masters);
}

/* Any groups, any rates: the longest time never grows, and it ends. */
static void test_drawn(struct rng *rng)
{
	uint32_t group_of[NODES], workers = 2 + (uint32_t)rng_below(rng, NODES - 1), steps = 0;
	uint32_t groups = 1 + (uint32_t)rng_below(rng, workers < 4 ? workers : 4);
	struct rig rig;

	for (uint32_t i = 0; i < workers; i++)
		group_of[i] = i < groups ? i : (uint32_t)rng_below(rng, groups);
	rig_open(&rig, group_of, workers);
	for (uint32_t i = 0; i < workers; i++)
		rig.rates[i] = rng_chance(rng, 2, 3) ? 10000000 : 2000000 + rng_below(rng, 18000000);
	double before = rig_longest(&rig);
	for (struct tune_move move = rig_step(&rig); move.moved > 0; move = rig_step(&rig), steps++) {
		double after = rig_longest(&rig);

		CHECK_MSG(after <= before * 1.0001, "longer: %g, %g", before, after);
		CHECK_MSG(steps < 500, "still moving %u from %u to %u", move.moved, move.from, move.to);
		before = after;
	}
	plan_masters_fini(&rig.masters);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct rng rng;

	test_equal();
	test_slow();
	for (uint64_t i = 0; i < 300; i++) {
		rng_init(&rng, seed + i);
		test_drawn(&rng);
	}
	return 0;
}
