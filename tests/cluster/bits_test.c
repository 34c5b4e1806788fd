/*
 * bits_test.c - the bits of a result follow from ranks and groups alone.
 *
 *     bits_test [--seed FIRST] [--count N]
 *
 * With contents whose sums depend on the order of addition, a call is run twice: under another
 * schedule, with other lanes, credits and chunk activation, and with the masters moved, one by one or
 * by a table of masters that is drawn, now and then from a plan that was written as text and read. All workers have the same bits both times. Where the order of addition is documented, the
 * bits are those of a plain loop in that order.
 */
#include <errno.h> /* program_invocation_name */
#include <stdlib.h>

#include "base/check.h"
#include "cluster.h"
#include "math/math.h"
#include "plan/check.h"
#include "plan/masters.h"
#include "plan/text.h"
#include "support/math_reference.h"

struct trial {
	const struct planner *planner;
	struct plan_spec spec;
	uint32_t group_of[16];
	enum esp_type type;
	enum esp_op op;
	uint64_t data_seed;
};

static void draw_trial(struct rng *rng, struct trial *trial)
{
	static const enum plan_collective collectives[] = {PLAN_ALLREDUCE, PLAN_ALLREDUCE, PLAN_REDUCE_SCATTER, PLAN_REDUCE};
	static const enum esp_type types[] = {ESP_F32, ESP_F32, ESP_F64, ESP_F16, ESP_BF16};
	static const enum esp_op ops[] = {ESP_SUM, ESP_SUM, ESP_PROD, ESP_AVG, ESP_MIN};
	uint32_t workers = 2 + (uint32_t)rng_below(rng, 15), planners = 0, groups = 1 + (uint32_t)rng_below(rng, 4);

	while (plan_planner(planners))
		planners++;
	trial->planner = plan_planner((uint32_t)rng_below(rng, planners));
	trial->type = types[rng_below(rng, 5)];
	trial->op = ops[rng_below(rng, 5)];
	trial->data_seed = rng_next(rng);
	uint32_t element = (uint32_t)math_type_bytes(trial->type);
	groups = groups < workers ? groups : workers;
	for (uint32_t i = 0; i < workers; i++)
		trial->group_of[i] = i < groups ? i : (uint32_t)rng_below(rng, groups);
	trial->spec = (struct plan_spec){
		.chunks = {
			.collective = collectives[rng_below(rng, 4)],
			.workers = workers,
			.root = (uint32_t)rng_below(rng, workers),
			.bytes = 60 * element,
			.chunk_bytes = (1 + rng_below(rng, 30)) * element,
			.align = element,
		},
		.in_place = rng_chance(rng, 1, 2),
		.group_of = trial->group_of,
	};
}

/* Puts every master that can be moved somewhere else. */
static void move_masters(struct plan *plan, struct rng *rng)
{
	for (uint64_t c = 0; c < plan->chunks.chunk_count; c++) {
		uint32_t node = (uint32_t)rng_below(rng, plan->workers);
		/* Refused where the planner or the collective fixes the place: then there is nothing to show. */
		enum esp_status moved = plan_move_owner(plan, c, node);

		moved |= plan_move_local(plan, c, plan->group_of[node], node);
		moved |= plan_move_global(plan, c, (uint32_t)rng_below(rng, plan->group_count));
		(void)moved;
	}
}

/* A table in which everything is drawn. */
static void draw_masters(const struct trial *trial, struct rng *rng, struct plan_masters *out)
{
	struct error err;

	CHECK_MSG(plan_masters_init(out, trial->group_of, trial->spec.chunks.workers, 1 + (uint32_t)rng_below(rng, 9), &err) == ESP_OK,
	          "%s", err.text);
	for (uint32_t s = 0; s < out->slots; s++) {
		out->global_group[s] = (uint32_t)rng_below(rng, out->groups);
		for (uint32_t i = 0; i < out->workers; i++) {
			if (rng_chance(rng, 1, 2))
				out->local_master[out->group_of[i] * out->slots + s] = i;
		}
	}
}

/* The plan as it is after it was written and read. */
static struct plan *through_text(struct plan *plan)
{
	char *text;
	size_t length;
	struct plan *read;
	struct plan_report report;
	struct error err = {0};
	FILE *file = open_memstream(&text, &length);

	CHECK(file && plan_print(plan, file, &err) == ESP_OK && fclose(file) == 0);
	CHECK_MSG(plan_parse(text, length, &read, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(plan_check(read, NULL, &report, NULL, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(plan_lap(read), plan_lap(plan));
	plan_close(plan);
	free(text);
	return read;
}

static struct cluster_call *run_trial(const struct trial *trial, struct cluster *cluster, uint64_t seed, bool move)
{
	struct plan *plan;
	struct rng rng;
	struct error err;
	char why[160];

	rng_init(&rng, seed);
	struct cluster_spec spec = {
		.seed = seed,
		.lanes = 1 + (uint32_t)rng_below(&rng, 3),
		.streams = 1,
		.credits = 1u << rng_below(&rng, 4),
		.active_chunks = 1 + (uint32_t)rng_below(&rng, 8),
		.slot_bytes = 4096,
		.delay_ns = 1000,
		.start_spread_ns = 1000,
		.fragment_most = (uint32_t)rng_below(&rng, 2) * 13,
		.carry = INPROC_MIXED,
		.victim = PLAN_NONE,
	};
	struct plan_spec plan_spec = trial->spec;
	struct plan_masters masters = {0};
	bool has_table = move && strcmp(plan_planner_name(trial->planner), "two-level") == 0 && rng_chance(&rng, 2, 3);

	if (has_table) {
		draw_masters(trial, &rng, &masters);
		plan_spec.masters = &masters;
	}
	CHECK_MSG(plan_open(trial->planner, &plan_spec, &plan, &err) == ESP_OK, "%s", err.text);
	plan_masters_fini(&masters);
	if (move && !has_table)
		move_masters(plan, &rng);
	if (move && rng_chance(&rng, 1, 2))
		plan = through_text(plan);
	spec.nodes = plan->nodes; /* with hubs and switches */
	sim_cluster_open(cluster, &spec);
	struct cluster_call *call =
		cluster_add(cluster, plan, true, trial->type, trial->op, 1, FILL_WILD, trial->data_seed);
	cluster_run(cluster);
	CHECK_MSG(cluster_matches(call, why, sizeof(why)), "%s", why);
	for (uint32_t node = 0; node < plan->workers; node++)
		CHECK(call->status[node] == ESP_OK);
	return call;
}

static void compare(const struct cluster_call *a, const struct cluster_call *b, uint64_t seed)
{
	size_t bytes = math_type_bytes(a->type);
	char text[256];

	cluster_describe(a, text, sizeof(text));
	for (uint32_t node = 0; node < a->plan->workers; node++) {
		for (uint64_t i = 0; i < a->buffers[node].out_bytes; i += bytes)
			CHECK_MSG(ref_same(a->type, a->buffers[node].out + i, b->buffers[node].out + i),
			          "other bits at node %u, byte %" PRIu64 "\n  %s\n  replay: %s --seed %" PRIu64 " --count 1",
			          node, i, text, program_invocation_name, seed);
	}
}

/* ---- the documented orders ---- */

struct element {
	uint8_t bytes[8];
};

/* flat, central: x0 + x1 + x2 ...; two-level: each group so, then the groups so. */
static struct element in_order(const struct trial *trial, const struct element *inputs)
{
	uint32_t workers = trial->spec.chunks.workers;
	bool grouped = plan_planner_needs_groups(trial->planner);
	struct element total = {{0}}, sum = {{0}};
	bool any = false;

	for (uint32_t group = 0; group < (grouped ? 4u : 1u); group++) {
		bool first = true;

		for (uint32_t i = 0; i < workers; i++) {
			if (grouped && trial->group_of[i] != group)
				continue;
			if (first)
				sum = inputs[i];
			else
				ref_fold(trial->type, trial->op, &sum, &sum, &inputs[i]);
			first = false;
		}
		if (first)
			continue;
		if (any)
			ref_fold(trial->type, trial->op, &total, &total, &sum);
		else
			total = sum;
		any = true;
	}
	if (trial->op == ESP_AVG)
		ref_finish(trial->type, ESP_AVG, &total, workers);
	return total;
}

/* An allreduce out of place keeps its inputs: add them up again, in the documented order. */
static void compare_order(const struct trial *trial, const struct cluster_call *call)
{
	const char *name = plan_planner_name(trial->planner);
	bool documented = strcmp(name, "flat") == 0 || strcmp(name, "central") == 0 || strcmp(name, "two-level") == 0;
	size_t bytes = math_type_bytes(trial->type);
	struct element inputs[16];

	if (!documented || trial->spec.in_place || trial->spec.chunks.collective != PLAN_ALLREDUCE)
		return;
	for (uint64_t i = 0; i < trial->spec.chunks.bytes; i += bytes) {
		for (uint32_t node = 0; node < trial->spec.chunks.workers; node++)
			memcpy(&inputs[node], call->buffers[node].in + i, bytes);
		struct element expected = in_order(trial, inputs);

		CHECK_MSG(ref_same(trial->type, &expected, call->buffers[0].out + i), "%s does not add in the documented order",
		          name);
	}
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 1000);

	for (uint64_t seed = first; seed - first < count; seed++) {
		struct cluster a, b;
		struct trial trial;
		struct rng rng;

		rng_init(&rng, seed);
		draw_trial(&rng, &trial);
		struct cluster_call *once = run_trial(&trial, &a, rng_next(&rng), false);
		struct cluster_call *again = run_trial(&trial, &b, rng_next(&rng), true);
		compare(once, again, seed);
		compare_order(&trial, once);
		sim_cluster_close(&a);
		sim_cluster_close(&b);
	}
	printf("%" PRIu64 " calls had the same bits twice\n", count);
	return 0;
}
