/*
 * mutants_test.c - the checker against the executor: what it passes must run and be right.
 *
 *     mutants_test [--seed FIRST] [--count N]
 *
 * Plans are damaged at random: steps dropped, doubled, swapped, sent to others. Those that
 * the checker refuses are counted; those that it passes are run under several schedules with
 * as little as one credit, on links that read memory late. One that hangs or gives a wrong
 * element is a hole in the checker.
 */
#include <stdlib.h>

#include "base/check.h"
#include "cluster.h"
#include "plan/check.h"

/* A copy of a plan that holds its rows, as one that was read from a file does. */
static struct plan *stored_copy(const struct plan *from)
{
	uint64_t chunks = from->chunks.chunk_count, used = 0, capacity = 0;
	struct plan *plan = calloc(1, sizeof(*plan));
	struct plan_piece *pieces = calloc(chunks + 1, sizeof(*pieces));
	struct plan_row row = {0};
	struct chunks_spec spec = {
		.collective = from->chunks.collective, .workers = from->workers, .root = from->chunks.root};

	CHECK(plan && pieces);
	*plan = (struct plan){
		.planner = from->planner, .workers = from->workers, .nodes = from->nodes, .in_place = from->in_place};
	plan->row_first = calloc(chunks * from->nodes + 1, sizeof(*plan->row_first));
	CHECK(plan->row_first);
	for (uint64_t c = 0; c < chunks; c++) {
		pieces[c] = chunks_piece(&from->chunks, c);
		for (uint32_t node = 0; node < from->nodes; node++) {
			CHECK(plan_row(from, node, c, &row) == ESP_OK);
			if (used + row.count > capacity) {
				capacity = (used + row.count) * 2;
				plan->steps = realloc(plan->steps, capacity * sizeof(*plan->steps));
				CHECK(plan->steps);
			}
			if (row.count > 0)
				memcpy(plan->steps + used, row.steps, row.count * sizeof(*row.steps));
			used += row.count;
			plan->row_first[c * from->nodes + node + 1] = used;
		}
	}
	chunks_init_list(&plan->chunks, &spec, pieces, chunks);
	plan_row_fini(&row);
	return plan;
}

/* Moves the rows behind row `at` by one step, to make room or to close a gap. */
static void shift_rows(struct plan *plan, uint64_t at, int by)
{
	uint64_t rows = plan->chunks.chunk_count * plan->nodes;

	for (uint64_t i = at + 1; i <= rows; i++)
		plan->row_first[i] = (uint64_t)((int64_t)plan->row_first[i] + by);
}

static void drop_step(struct plan *plan, uint64_t row, uint64_t step)
{
	uint64_t total = plan->row_first[plan->chunks.chunk_count * plan->nodes];

	memmove(plan->steps + step, plan->steps + step + 1, (total - step - 1) * sizeof(*plan->steps));
	shift_rows(plan, row, -1);
}

static void double_step(struct plan *plan, uint64_t row, uint64_t step)
{
	uint64_t total = plan->row_first[plan->chunks.chunk_count * plan->nodes];

	plan->steps = realloc(plan->steps, (total + 1) * sizeof(*plan->steps));
	CHECK(plan->steps);
	memmove(plan->steps + step + 1, plan->steps + step, (total - step) * sizeof(*plan->steps));
	shift_rows(plan, row, 1);
}

/* One place in place of two: what is still being sent from it may be overwritten. */
static void merge_places(struct plan_step *steps, uint64_t count, uint8_t from, uint8_t to)
{
	for (uint64_t i = 0; i < count; i++) {
		if (steps[i].place == from && steps[i].verb != PLAN_DELIVER)
			steps[i].place = to;
		if (steps[i].verb == PLAN_COPY && steps[i].source == from)
			steps[i].source = to;
	}
}

static void mutate(struct plan *plan, struct rng *rng)
{
	uint64_t rows = plan->chunks.chunk_count * plan->nodes, row;

	do
		row = rng_below(rng, rows);
	while (plan->row_first[row] == plan->row_first[row + 1]);
	uint64_t first = plan->row_first[row], count = plan->row_first[row + 1] - first;
	uint64_t step = first + rng_below(rng, count), other = first + rng_below(rng, count);
	struct plan_step kept = plan->steps[step];

	switch (rng_below(rng, 8)) {
	case 0:
		drop_step(plan, row, step);
		break;
	case 1:
		double_step(plan, row, step);
		break;
	case 2:
		plan->steps[step] = plan->steps[other];
		plan->steps[other] = kept;
		break;
	case 3:
		plan->steps[step].node = (uint32_t)rng_below(rng, plan->nodes + 1);
		break;
	case 4:
		plan->steps[step].place = (uint8_t)rng_below(rng, PLAN_TMP + 2);
		break;
	case 5:
		merge_places(plan->steps + first, count, (uint8_t)(PLAN_OUT + rng_below(rng, 3)),
		             (uint8_t)(PLAN_OUT + rng_below(rng, 3)));
		break;
	case 6:
		plan->in_place = plan->chunks.collective != PLAN_ALLTOALL;
		break;
	default:
		plan->steps[step].verb = (uint8_t)rng_below(rng, PLAN_DELIVER + 1);
		break;
	}
}

static void run_mutant(struct plan *plan, uint64_t seed, uint64_t schedule)
{
	struct cluster_spec spec = {
		.seed = schedule,
		.nodes = plan->nodes,
		.lanes = 1,
		.streams = 1,
		.credits = 1 + schedule % 2,
		.active_chunks = 1 + (uint32_t)(schedule % 3),
		.slot_bytes = 4096,
		.delay_ns = 100000,
		.start_spread_ns = schedule % 5 * 10000,
		.fragment_most = 40,
		.carry = schedule % 3 ? LOOP_LATE : LOOP_SHARE,
		.victim = PLAN_NONE,
	};
	struct cluster cluster;
	char why[160] = "it hangs", text[256];

	cluster_open(&cluster, &spec);
	struct cluster_call *call = cluster_add(&cluster, plan, false, ESP_I32, ESP_SUM, 1, FILL_SMALL, seed);
	cluster_run(&cluster);
	bool fine = true;
	for (uint32_t node = 0; node < plan->nodes; node++)
		fine = fine && call->status[node] == ESP_OK;
	fine = fine && cluster_matches(call, why, sizeof(why));
	cluster_describe(call, text, sizeof(text));
	CHECK_MSG(fine, "the checker passes a plan that is wrong: %s\n  %s\n  replay: mutants_test --seed %" PRIu64 " --count 1",
	          why, text, seed);
	cluster_close(&cluster);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 20000);
	uint64_t refused = 0, passed = 0;

	for (uint64_t seed = first; seed - first < count; seed++) {
		struct rng rng;
		struct plan_report report;
		unsigned planners = 0;

		rng_init(&rng, seed);
		while (plan_planner(planners))
			planners++;
		struct plan *made = cluster_draw_plan(&rng, plan_planner((unsigned)rng_below(&rng, planners)),
		                                      (enum plan_collective)rng_below(&rng, PLAN_COLLECTIVE_COUNT),
		                                      2 + (uint32_t)rng_below(&rng, 5), 4);
		struct plan *mutant = made->chunks.chunk_count ? stored_copy(made) : NULL;

		plan_close(made);
		if (!mutant)
			continue;
		for (uint64_t times = 1 + rng_below(&rng, 2); times > 0; times--)
			mutate(mutant, &rng);
		if (plan_check(mutant, NULL, &report, NULL, NULL) != ESP_OK) {
			refused++;
		} else {
			passed++;
			for (uint64_t schedule = 0; schedule < 6; schedule++)
				run_mutant(mutant, seed, seed * 6 + schedule);
		}
		plan_close(mutant);
	}
	printf("%" PRIu64 " damaged plans refused, %" PRIu64 " harmless ones run\n", refused, passed);
	CHECK(count < 1000 || (refused > passed && passed > 0));
	return 0;
}
