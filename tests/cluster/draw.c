/*
 * draw.c - scenarios drawn from a seed.
 */
#include <stdlib.h>

#include "base/check.h"
#include "cluster.h"
#include "math/math.h"
#include "plan/check.h"

static uint32_t pick(struct rng *rng, const uint32_t *from, uint32_t count)
{
	return from[rng_below(rng, count)];
}

/* Few nodes often, many sometimes. */
static uint32_t draw_workers(struct rng *rng)
{
	uint32_t most = rng_chance(rng, 1, 8) ? 64 : rng_chance(rng, 1, 3) ? 17 : 9;

	return 1 + (uint32_t)rng_below(rng, most);
}

static uint32_t *draw_groups(struct rng *rng, uint32_t workers)
{
	uint32_t *group_of = calloc(workers, sizeof(*group_of));
	uint32_t groups = 1 + (uint32_t)rng_below(rng, workers < 6 ? workers : 6);

	CHECK(group_of);
	for (uint32_t i = 0; i < workers; i++)
		group_of[i] = i < groups ? i : (uint32_t)rng_below(rng, groups); /* none is empty */
	for (uint32_t i = workers; i-- > 1;) {
		uint32_t j = (uint32_t)rng_below(rng, i + 1), other = group_of[j];

		group_of[j] = group_of[i];
		group_of[i] = other;
	}
	return group_of;
}

/* Every worker once, in any order. */
static uint32_t *draw_order(struct rng *rng, uint32_t workers)
{
	uint32_t *order = calloc(workers, sizeof(*order));

	CHECK(order);
	for (uint32_t i = 0; i < workers; i++) {
		uint32_t j = (uint32_t)rng_below(rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

/* The groups two by two. */
static uint32_t *draw_zones(const uint32_t *group_of, uint32_t workers)
{
	uint32_t *zones = calloc(workers, sizeof(*zones));

	CHECK(zones);
	for (uint32_t i = 0; i < workers; i++)
		zones[group_of[i]] = group_of[i] / 2;
	return zones;
}

static uint64_t *draw_counts(struct rng *rng, enum plan_collective collective, uint32_t workers, uint32_t element_bytes)
{
	bool is_one_block = collective == PLAN_ALLREDUCE || collective == PLAN_BROADCAST || collective == PLAN_REDUCE ||
	                    collective == PLAN_BARRIER;
	if (is_one_block || rng_chance(rng, 1, 2))
		return NULL;
	uint64_t count = collective == PLAN_ALLTOALL ? (uint64_t)workers * workers : workers;
	uint64_t *counts = calloc(count, sizeof(*counts));

	CHECK(counts);
	for (uint64_t i = 0; i < count; i++)
		counts[i] = rng_chance(rng, 1, 4) ? 0 : rng_below(rng, workers > 20 ? 4 : 40) * element_bytes;
	return counts;
}

struct plan *cluster_draw_plan(struct rng *rng, const struct planner *planner, enum plan_collective collective,
                               uint32_t workers, uint32_t element_bytes)
{
	static const uint32_t fanouts[] = {0, 1, 2, 3, 4, 16};
	uint32_t *groups = draw_groups(rng, workers), *order = draw_order(rng, workers), *zones = draw_zones(groups, workers);
	bool takes_order = !plan_planner_needs_groups(planner) && !plan_planner_has_extra(planner);
	uint64_t *counts = draw_counts(rng, collective, workers, element_bytes);
	uint64_t most = collective == PLAN_ALLTOALL ? 400 / workers : workers > 20 ? 30 : 300;
	bool is_large = workers <= 8 && rng_chance(rng, 1, 8); /* messages that are shifted: transport.h */
	most *= is_large ? 16 : 1;
	uint64_t elements = rng_chance(rng, 1, 10) ? 0 : 1 + rng_below(rng, most);
	bool leaves = rng_chance(rng, 1, 3);
	struct plan_spec spec = {
		.chunks =
			{
				.collective = collective,
				.workers = workers,
				.root = (uint32_t)rng_below(rng, workers),
				.bytes = collective == PLAN_BARRIER ? 0 : elements * element_bytes,
				.counts = counts,
				.chunk_bytes = rng_chance(rng, 1, 4) ? 0 : element_bytes * (1 + rng_below(rng, is_large ? 4096 : 64)),
				.align = element_bytes,
			},
		.in_place = collective != PLAN_ALLTOALL && rng_chance(rng, 1, 3),
		.group_of = plan_planner_needs_groups(planner) || rng_chance(rng, 1, 2) ? groups : NULL,
		.order = takes_order && rng_chance(rng, 1, 2) ? order : NULL,
		.zone_of = rng_chance(rng, 2, 3) ? zones : NULL,
		.leaves = leaves,
		.fanout = leaves ? 2 + (uint32_t)rng_below(rng, 4) : pick(rng, fanouts, 6),
		.servers = (uint32_t)rng_below(rng, 4),
	};
	struct plan *plan;
	struct error err;
	struct plan_report report;

	CHECK_MSG(plan_open(planner, &spec, &plan, &err) == ESP_OK, "plan: %s", err.text);
	CHECK_MSG(plan_check(plan, NULL, &report, NULL, &err) == ESP_OK, "%s %s: %s", plan_planner_name(planner),
	          plan_collective_name(collective), err.text);
	free(groups);
	free(order);
	free(zones);
	free(counts);
	return plan;
}

static const struct planner *draw_planner(struct rng *rng)
{
	unsigned count = 0;

	while (plan_planner(count))
		count++;
	return plan_planner((unsigned)rng_below(rng, count));
}

static double draw_factor(struct rng *rng, enum esp_type type)
{
	static const double factors[] = {0.5, 2, -1, 0.25, 3};

	return type <= ESP_BF16 ? factors[rng_below(rng, 5)] : (double)(1 + rng_below(rng, 5));
}

/* A type and an operation that go together; moves take any type, opaque bytes too. */
static void draw_arithmetic(struct rng *rng, bool reduces, enum esp_type *type, enum esp_op *op)
{
	do {
		*type = (enum esp_type)rng_below(rng, ESP_TYPE_COUNT);
		*op = (enum esp_op)rng_below(rng, ESP_OP_COUNT);
	} while (reduces && !math_op_defined(*type, *op));
	if (!reduces)
		*op = ESP_SUM;
}

static void draw_call(struct cluster *cluster, struct rng *rng, uint32_t workers, const struct planner *planner)
{
	enum plan_collective collective = (enum plan_collective)rng_below(rng, PLAN_COLLECTIVE_COUNT);
	enum esp_type type;
	enum esp_op op;

	/* 64 x 64 pairs around a ring are a hundred times the messages of anything else: now and then. */
	if (collective == PLAN_ALLTOALL && workers > 20 && !rng_chance(rng, 1, 8))
		collective = PLAN_ALLREDUCE;
	draw_arithmetic(rng, plan_collective_reduces(collective), &type, &op);
	struct plan *plan =
		cluster_draw_plan(rng, planner, collective, workers, (uint32_t)math_type_bytes(type));
	cluster_add(cluster, plan, true, type, op, draw_factor(rng, type), FILL_SMALL, rng_next(rng));
}

void cluster_draw(struct cluster *cluster, uint64_t seed)
{
	cluster_draw_with(cluster, seed, 0);
}

void cluster_draw_with(struct cluster *cluster, uint64_t seed, uint32_t corrupt_one_in)
{
	static const uint32_t credits[] = {1, 1, 2, 3, 4, 8, 16}, active[] = {1, 2, 4, 64};
	static const uint32_t fragments[] = {0, 0, 1, 7, 100, 5000}, flights[] = {0, 1, 2, 8};
	static const uint32_t firsts[] = {0, 0, UINT32_MAX - 3, INT32_MAX - 2u};
	struct rng rng;

	rng_init(&rng, seed);
	uint32_t workers = draw_workers(&rng);
	struct cluster_spec spec = {
		.seed = rng_next(&rng),
		.nodes = 2 * workers + 8, /* a binary tree with leaves has about as many inner nodes */
		.lanes = 1 + (uint32_t)rng_below(&rng, 3),
		.streams = 1 + (uint32_t)rng_below(&rng, 3),
		.credits = pick(&rng, credits, 7),
		.active_chunks = pick(&rng, active, 4),
		.slot_bytes = 65536,
		.first_index = pick(&rng, firsts, 4),
		.delay_ns = rng_chance(&rng, 1, 8) ? 0 : 1 + rng_below(&rng, 100000),
		.start_spread_ns = rng_chance(&rng, 1, 3) ? 0 : rng_below(&rng, 1000000),
		.fragment_most = pick(&rng, fragments, 6),
		.flight_most = pick(&rng, flights, 4),
		.carry = (enum inproc_carry)rng_below(&rng, INPROC_MIXED + 1),
		.checked = rng_chance(&rng, 1, 2) || corrupt_one_in > 0,
		.corrupt_one_in = corrupt_one_in,
		.victim = PLAN_NONE,
	};
	sim_cluster_open(cluster, &spec);
	for (uint64_t calls = 1 + rng_below(&rng, CLUSTER_CALLS); calls > 0; calls--)
		draw_call(cluster, &rng, workers, draw_planner(&rng));
}
