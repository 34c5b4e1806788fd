/*
 * mutants_test.c - the checker against the executor: what it passes must run and be right.
 *
 *     mutants_test [--seed FIRST] [--count N]
 *
 * Plans are damaged at random: steps dropped, doubled, swapped, sent to others. So are the
 * texts of plans with laps, in which laps and turns are drawn anew. Those that the checker
 * refuses are counted; those that it passes are run under several schedules with as little
 * as one credit, on links that read memory late. One that hangs or gives a wrong element is
 * a hole in the checker.
 */
#include <errno.h> /* program_invocation_name */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cluster.h"
#include "plan/check.h"
#include "plan/text.h"

static uint64_t append_row(struct plan *plan, const struct plan_step *steps, uint32_t count)
{
	uint64_t at = plan->step_count;

	plan->step_count += count + UINT64_C(1);
	plan->steps = realloc(plan->steps, plan->step_count * sizeof(*plan->steps));
	CHECK(plan->steps);
	plan->steps[at] = (struct plan_step){.verb = PLAN_ROW, .count = count};
	if (count > 0)
		memcpy(&plan->steps[at + 1], steps, count * sizeof(*steps));
	return at;
}

/* A copy of a plan that holds its rows, as one that was read from a file does, but each row for itself. */
static struct plan *stored_copy(const struct plan *from)
{
	uint64_t chunks = from->chunks.chunk_count;
	struct plan *plan = calloc(1, sizeof(*plan));
	struct plan_piece *pieces = calloc(chunks + 1, sizeof(*pieces));
	struct plan_row row = {0};
	struct chunks_spec spec = {
		.collective = from->chunks.collective, .workers = from->workers, .root = from->chunks.root};

	CHECK(plan && pieces);
	*plan = (struct plan){
		.planner = from->planner, .workers = from->workers, .nodes = from->nodes, .in_place = from->in_place};
	plan->row_at = calloc(chunks * from->nodes + 1, sizeof(*plan->row_at));
	CHECK(plan->row_at);
	append_row(plan, NULL, 0);
	for (uint64_t c = 0; c < chunks; c++) {
		pieces[c] = plan_chunks_piece(&from->chunks, c);
		for (uint32_t node = 0; node < from->nodes; node++) {
			CHECK(plan_row(from, node, c, &row) == ESP_OK);
			if (row.count > 0)
				plan->row_at[c * from->nodes + node] = append_row(plan, row.steps, row.count);
		}
	}
	plan_chunks_init_list(&plan->chunks, &spec, pieces, chunks);
	plan_row_fini(&row);
	return plan;
}

static void drop_step(struct plan_step *head, uint32_t step)
{
	memmove(&head[1 + step], &head[2 + step], (head->count - step - 1) * sizeof(*head));
	head->count--;
}

static void double_step(struct plan *plan, uint64_t row, uint32_t step)
{
	uint32_t count = plan->steps[plan->row_at[row]].count;
	uint64_t at = append_row(plan, NULL, 0);

	plan->step_count += count + UINT64_C(1);
	plan->steps = realloc(plan->steps, plan->step_count * sizeof(*plan->steps));
	CHECK(plan->steps);
	const struct plan_step *old = &plan->steps[plan->row_at[row] + 1];
	struct plan_step *copy = &plan->steps[at + 1];
	memcpy(copy, old, (step + UINT64_C(1)) * sizeof(*old));
	memcpy(copy + step + 1, old + step, (count - step) * sizeof(*old));
	plan->steps[at].count = count + 1;
	plan->row_at[row] = at;
}

/* Chunks dropped, moved, or resized: the rows stay right, the pieces do not. */
static void mutate_pieces(struct plan *plan, struct rng *rng)
{
	uint64_t count = plan->chunks.chunk_count;
	struct plan_piece *piece = &plan->chunks.blocks[rng_below(rng, count)];
	uint64_t *fields[] = {&piece->bytes, &piece->in_at, &piece->out_at};

	*fields[rng_below(rng, 3)] += rng_chance(rng, 1, 2) ? 4 : UINT64_MAX - 3;
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
	while (plan->row_at[row] == 0 || plan->steps[plan->row_at[row]].count == 0);
	struct plan_step *head = &plan->steps[plan->row_at[row]], *steps = head + 1;
	uint32_t count = head->count;
	uint32_t step = (uint32_t)rng_below(rng, count), other = (uint32_t)rng_below(rng, count);
	struct plan_step kept = steps[step];

	switch (rng_below(rng, 9)) {
	case 0:
		drop_step(head, step);
		break;
	case 1:
		double_step(plan, row, step);
		break;
	case 2:
		steps[step] = steps[other];
		steps[other] = kept;
		break;
	case 3:
		steps[step].node = (uint32_t)rng_below(rng, plan->nodes + 1);
		break;
	case 4:
		steps[step].place = (uint8_t)rng_below(rng, PLAN_TMP + 2);
		break;
	case 5:
		merge_places(steps, count, (uint8_t)(PLAN_OUT + rng_below(rng, 3)), (uint8_t)(PLAN_OUT + rng_below(rng, 3)));
		break;
	case 6:
		plan->in_place = plan->chunks.collective != PLAN_ALLTOALL;
		break;
	case 7:
		mutate_pieces(plan, rng);
		break;
	default:
		steps[step].verb = (uint8_t)rng_below(rng, PLAN_DELIVER + 2);
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
		.slot_bytes = 65536,
		.delay_ns = 100000,
		.start_spread_ns = schedule % 5 * 10000,
		.fragment_most = 40,
		.carry = schedule % 3 ? INPROC_LATE : INPROC_SHARE,
		.victim = PLAN_NONE,
	};
	struct cluster cluster;
	char why[160] = "it hangs", text[256];

	sim_cluster_open(&cluster, &spec);
	struct cluster_call *call = cluster_add(&cluster, plan, false, ESP_I32, ESP_SUM, 1, FILL_SMALL, seed);
	cluster_run(&cluster);
	bool fine = true;
	for (uint32_t node = 0; node < plan->nodes; node++)
		fine = fine && call->status[node] == ESP_OK;
	fine = fine && cluster_matches(call, why, sizeof(why));
	cluster_describe(call, text, sizeof(text));
	CHECK_MSG(fine, "the checker passes a plan that is wrong: %s\n  %s\n  replay: %s --seed %" PRIu64 " --count 1",
	          why, text, program_invocation_name, seed);
	sim_cluster_close(&cluster);
}

struct tally {
	uint64_t refused, passed;
};

static void judge(struct plan *mutant, uint64_t seed, struct tally *tally)
{
	struct plan_report report;

	if (plan_check(mutant, NULL, &report, NULL, NULL) != ESP_OK) {
		tally->refused++;
		return;
	}
	tally->passed++;
	for (uint64_t schedule = 0; schedule < 6; schedule++)
		run_mutant(mutant, seed, seed * 6 + schedule);
}

/* ---- turns ---- */

static struct plan *draw_lap_plan(struct rng *rng)
{
	static const char *const names[] = {"ring", "halving-doubling", "two-level", "three-level", "ring-switch"};
	uint32_t workers = 2 + (uint32_t)rng_below(rng, 5), groups = 1 + (uint32_t)rng_below(rng, workers), group_of[8];
	struct plan_spec spec = {
		.chunks = {.workers = workers, .bytes = 4 * (17 + rng_below(rng, 8)), .chunk_bytes = 4, .align = 4},
		.in_place = rng_chance(rng, 1, 2),
		.group_of = group_of,
	};
	struct plan *plan;
	struct error err = {0};

	for (uint32_t i = 0; i < workers; i++)
		group_of[i] = i < groups ? i : (uint32_t)rng_below(rng, groups);
	CHECK_MSG(plan_open(plan_planner_find(names[rng_below(rng, 5)]), &spec, &plan, &err) == ESP_OK, "%s", err.text);
	return plan;
}

/*
 * Copies a text. Its laps have another length, and of the messages that had one turn some come before others: how far they are apart
 * decides whether they come before those of other turns, too.
 */
static void put_turns_anew(const char *text, FILE *out, struct rng *rng)
{
	uint64_t spread = 1 + rng_below(rng, rng_chance(rng, 1, 2) ? 4 : 9);

	while (*text) {
		const char *next = strpbrk(text, "l@");

		if (next == text && (*text == '@' || strncmp(text, "lap ", 4) == 0)) {
			char *end;
			uint64_t turn = strtoull(text + (*text == '@' ? 1 : 4), &end, 10);

			if (*text == '@')
				fprintf(out, "@%" PRIu64, 4 * turn + rng_below(rng, spread));
			else
				fprintf(out, "lap %" PRIu64, 2 + rng_below(rng, 16));
			text = end;
			continue;
		}
		size_t length = next == text ? 1 : next ? (size_t)(next - text) : strlen(text);
		fwrite(text, 1, length, out);
		text += length;
	}
}

static void judge_turns(struct rng *rng, uint64_t seed, struct tally *tally)
{
	struct plan *made = draw_lap_plan(rng), *mutant = NULL;
	char *text, *anew;
	size_t length;
	struct error err = {0};
	FILE *file = open_memstream(&text, &length);

	CHECK(file && plan_print(made, file, &err) == ESP_OK && fclose(file) == 0);
	file = open_memstream(&anew, &length);
	CHECK(file);
	put_turns_anew(text, file, rng);
	CHECK(fclose(file) == 0);
	if (plan_parse(anew, length, &mutant, &err) == ESP_OK) {
		CHECK(plan_lap(mutant) > 1);
		judge(mutant, seed, tally);
	} else {
		CHECK_MSG(strstr(err.text, " after one of turn "), "%s", err.text);
		tally->refused++;
	}
	plan_close(mutant);
	plan_close(made);
	free(text);
	free(anew);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 20000);
	struct tally damaged = {0}, turned = {0};

	for (uint64_t seed = first; seed - first < count; seed++) {
		struct rng rng;
		unsigned planners = 0;

		rng_init(&rng, ~seed);
		if (seed % 8 == 0)
			judge_turns(&rng, seed, &turned);
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
		judge(mutant, seed, &damaged);
		plan_close(mutant);
	}
	printf("%" PRIu64 " damaged plans refused, %" PRIu64 " harmless ones run; with other turns %" PRIu64 " refused, %" PRIu64 " run\n",
	       damaged.refused, damaged.passed, turned.refused, turned.passed);
	CHECK(count < 1000 || (damaged.refused > damaged.passed && damaged.passed > 0));
	CHECK(count < 1000 || (turned.refused > 0 && turned.passed > 0));
	return 0;
}
