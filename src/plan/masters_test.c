/*
 * masters_test.c - tables of masters: even when made, even in their first slots, and what plans make of them.
 *
 *     masters_test [--seed N]
 */
#include "plan/masters.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "plan/check.h"
#include "plan/plan.h"

#define NODES 24u

/* Every group has a node; returns how many groups. */
static uint32_t draw_groups(struct rng *rng, uint32_t workers, uint32_t *group_of)
{
	uint32_t groups = 1 + (uint32_t)rng_below(rng, workers < 5 ? workers : 5);

	for (uint32_t i = 0; i < workers; i++)
		group_of[i] = i < groups ? i : (uint32_t)rng_below(rng, groups);
	return groups;
}

static void shuffle(struct plan_masters *masters, struct rng *rng)
{
	for (uint32_t s = 0; s < masters->slots; s++) {
		masters->global_group[s] = (uint32_t)rng_below(rng, masters->groups);
		for (uint32_t i = 0; i < 3 * masters->workers; i++) {
			uint32_t node = (uint32_t)rng_below(rng, masters->workers);

			masters->local_master[(uint64_t)masters->group_of[node] * masters->slots + s] = node;
		}
	}
}

static uint32_t count_locals(const struct plan_masters *masters, uint32_t node, uint32_t first_slots)
{
	uint32_t count = 0;

	for (uint32_t s = 0; s < first_slots; s++)
		count += plan_masters_local(masters, masters->group_of[node], s) == node;
	return count;
}

/* Two racks of four: all have the same, in all slots and in each round of them. */
static void test_even(void)
{
	uint32_t group_of[8] = {0, 0, 0, 0, 1, 1, 1, 1};
	struct plan_masters masters;
	struct error err;

	CHECK(plan_masters_init(&masters, group_of, 8, 0, &err) == ESP_OK);
	CHECK_U64(masters.slots, 64);
	for (uint32_t node = 0; node < 8; node++) {
		CHECK_U64(count_locals(&masters, node, 64), 16);
		CHECK_U64(count_locals(&masters, node, 8), 2);
		CHECK_U64(plan_masters_load(&masters, node), 48 + 16 * 4);
	}
	for (uint32_t s = 0; s < 64; s++)
		CHECK_U64(masters.global_group[s], s % 2);
	plan_masters_fini(&masters);
	CHECK(plan_masters_init(&masters, (uint32_t[]){0, 2}, 2, 0, &err) == ESP_EINVAL);
	CHECK(plan_masters_init(&masters, (uint32_t[]){0, 1}, 2, PLAN_SLOTS_MAX + 1, &err) == ESP_EINVAL);
}

/* Whatever the groups: no node has more than one slot more than others of its group, the first slots included. */
static void test_even_drawn(struct rng *rng)
{
	uint32_t group_of[NODES], workers = 1 + (uint32_t)rng_below(rng, NODES);
	struct plan_masters masters, copy = {0};
	struct error err;

	(void)draw_groups(rng, workers, group_of);
	CHECK_MSG(plan_masters_init(&masters, group_of, workers, 0, &err) == ESP_OK, "%s", err.text);
	CHECK(plan_masters_fit(&masters, group_of, workers, masters.groups));
	for (uint32_t i = 0; i < workers; i++) {
		for (uint32_t k = 0; k < workers; k++) {
			uint32_t mine = count_locals(&masters, i, masters.slots), theirs = count_locals(&masters, k, masters.slots);

			CHECK(group_of[i] != group_of[k] || mine <= theirs + (masters.groups > 2 ? masters.groups : 1));
		}
	}
	CHECK(plan_masters_copy(&copy, &masters) == ESP_OK && plan_masters_same(&copy, &masters));
	shuffle(&copy, rng);
	CHECK(plan_masters_fit(&copy, group_of, workers, masters.groups));
	CHECK(plan_masters_copy(&copy, &masters) == ESP_OK && plan_masters_same(&copy, &masters));
	if (masters.groups > 1) { /* a master of another group */
		copy.local_master[0] = copy.local_master[copy.slots];
		CHECK(!plan_masters_fit(&copy, group_of, workers, masters.groups));
	}
	plan_masters_fini(&copy);
	plan_masters_fini(&masters);
}

/* Messages that a node sends in the whole plan. */
static uint64_t count_sends(const struct plan *plan, uint32_t node)
{
	struct plan_row row = {0};
	uint64_t sends = 0;

	for (uint64_t c = 0; c < plan->chunks.chunk_count; c++) {
		CHECK(plan_row(plan, node, c, &row) == ESP_OK);
		for (uint32_t i = 0; i < row.count; i++)
			sends += row.steps[i].verb == PLAN_SEND;
	}
	plan_row_fini(&row);
	return sends;
}

/* A plan of any masters passes the checker, has them where the table says, and moves what plan_masters_load() says. */
static void test_plans(struct rng *rng)
{
	uint32_t group_of[NODES], workers = 2 + (uint32_t)rng_below(rng, NODES - 1);
	uint32_t groups = draw_groups(rng, workers, group_of), slots = 1 + (uint32_t)rng_below(rng, 12);
	uint64_t rounds = 1 + rng_below(rng, 3);
	struct plan_masters masters;
	struct plan_report report;
	struct plan *plan;
	struct error err;
	static const enum plan_collective collectives[] = {
		PLAN_ALLREDUCE, PLAN_ALLREDUCE, PLAN_REDUCE_SCATTER, PLAN_ALLGATHER, PLAN_BROADCAST, PLAN_REDUCE, PLAN_BARRIER};
	enum plan_collective collective = collectives[rng_below(rng, 7)];
	struct plan_spec spec = {
		.chunks = {
			.collective = collective,
			.workers = workers,
			.root = (uint32_t)rng_below(rng, workers),
			.bytes = collective == PLAN_BARRIER ? 0 : rounds * slots * 64,
			.chunk_bytes = 64,
			.align = 4,
		},
		.in_place = rng_chance(rng, 1, 2),
		.group_of = group_of,
		.masters = &masters,
	};

	CHECK(plan_masters_init(&masters, group_of, workers, slots, &err) == ESP_OK);
	shuffle(&masters, rng);
	CHECK_MSG(plan_open(plan_planner_find("two-level"), &spec, &plan, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(plan_check(plan, NULL, &report, NULL, &err) == ESP_OK, "%s", err.text);
	for (uint32_t node = 0; collective == PLAN_ALLREDUCE && node < workers; node++)
		CHECK_U64(count_sends(plan, node), rounds * plan_masters_load(&masters, node));
	plan_close(plan);

	/* Other groups than the masters': refused, not run. */
	if (groups > 1 && collective == PLAN_ALLREDUCE) {
		masters.local_master[0] = masters.local_master[masters.slots];
		CHECK(plan_open(plan_planner_find("two-level"), &spec, &plan, &err) == ESP_EINVAL);
	}
	plan_masters_fini(&masters);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct rng rng;

	test_even();
	for (uint64_t i = 0; i < 300; i++) {
		rng_init(&rng, seed + i);
		test_even_drawn(&rng);
		test_plans(&rng);
	}
	return 0;
}
