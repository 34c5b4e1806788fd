#include "plan/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

static struct plan *open_plan(const struct planner *planner, enum plan_collective collective, uint32_t workers,
                              uint64_t bytes, uint64_t chunks)
{
	uint32_t group_of[32];
	struct plan *plan = NULL;
	struct error err = {0};

	for (uint32_t i = 0; i < workers; i++)
		group_of[i] = i % 3;
	const struct plan_spec spec = {
		.chunks = {.collective = collective,
	               .workers = workers,
	               .root = workers - 1,
	               .bytes = bytes,
	               .chunk_bytes = (bytes + chunks - 1) / chunks},
		.group_of = group_of,
	};
	CHECK(plan_open(planner, &spec, &plan, &err) == ESP_OK);
	return plan;
}

static void check_same(const struct plan *plan, const struct plan *computed)
{
	struct plan_row row = {0}, wanted = {0};

	for (uint64_t i = 0; i < plan->chunks.chunk_count * plan->nodes; i++) {
		uint32_t node = (uint32_t)(i % plan->nodes);

		CHECK(plan_row(plan, node, i / plan->nodes, &row) == ESP_OK);
		CHECK(plan_row(computed, node, i / plan->nodes, &wanted) == ESP_OK);
		CHECK(row.count == wanted.count && row.tmp_count == wanted.tmp_count);
		CHECK(row.count == 0 || memcmp(row.steps, wanted.steps, row.count * sizeof(*row.steps)) == 0);
	}
	plan_row_fini(&row);
	plan_row_fini(&wanted);
}

/* Whatever plans share, their rows are those that they would compute themselves. */
static uint32_t test_share(const struct planner *planner, enum plan_collective collective, struct rng *rng)
{
	uint32_t workers = 4 + (uint32_t)rng_below(rng, 12), shared = 0;
	struct plan *first = open_plan(planner, collective, workers, 1 + rng_below(rng, 100000), 1 + rng_below(rng, 20));
	struct plan_rows *rows = NULL;
	struct error err = {0};

	CHECK(plan_rows_open(first, &rows, &err) == ESP_OK);
	for (int i = 0; i < 8; i++) {
		uint64_t bytes = 1 + rng_below(rng, 100000),
		         chunks = i < 6 ? first->chunks.equal_pieces : 1 + rng_below(rng, 20);
		uint32_t nodes = workers + (i == 5);
		struct plan *plan = open_plan(planner, collective, nodes, bytes, chunks),
					*computed = open_plan(planner, collective, nodes, bytes, chunks);

		if (plan_rows_share(plan, rows)) {
			shared++;
			CHECK(nodes == workers && plan->chunks.chunk_count == first->chunks.chunk_count);
			check_same(plan, computed);
		}
		/* A plan whose masters move has rows of its own again. */
		if (plan_move_owner(plan, 0, 1) == ESP_OK && plan_move_owner(computed, 0, 1) == ESP_OK)
			check_same(plan, computed);
		plan_close(plan);
		plan_close(computed);
	}
	plan_rows_close(rows);
	plan_close(first);
	return shared;
}

int main(void)
{
	static const enum plan_collective collectives[] = {PLAN_ALLREDUCE, PLAN_BROADCAST, PLAN_REDUCE, PLAN_ALLGATHER,
	                                                   PLAN_ALLTOALL};
	struct rng rng;

	rng_init(&rng, 7);
	for (unsigned p = 0; plan_planner(p); p++) {
		for (unsigned c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
			uint32_t shared = 0;

			for (int i = 0; i < 10; i++)
				shared += test_share(plan_planner(p), collectives[c], &rng);
			CHECK(shared > 0); /* some differ in their sizes alone */
		}
	}
	return 0;
}
