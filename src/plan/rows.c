#include "plan/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "plan/planner.h"

struct plan_rows {
	const struct plan *plan;
	struct plan_step *steps; /* each row behind a PLAN_ROW, which has the number of its scratch places in place */
	size_t count, capacity;
	size_t *first; /* by chunk and node: chunk * nodes + node */
};

/* ---- making ---- */

static bool append(struct plan_rows *rows, const struct plan_row *row)
{
	size_t needed = rows->count + row->count + 1;

	if (!vec_reserve(&rows->steps, &rows->capacity, needed, sizeof(*rows->steps)))
		return false;
	struct plan_step *head = &rows->steps[rows->count];
	*head = (struct plan_step){.verb = PLAN_ROW, .place = (uint8_t)row->tmp_count, .count = row->count};
	if (row->count > 0)
		memcpy(head + 1, row->steps, row->count * sizeof(*row->steps));
	rows->count = needed;
	return true;
}

static bool append_all(struct plan_rows *rows)
{
	const struct plan *plan = rows->plan;
	struct plan_row row = {0};
	bool has_memory = rows->first != NULL;

	for (uint64_t i = 0; has_memory && i < plan->chunks.chunk_count * plan->nodes; i++) {
		rows->first[i] = rows->count;
		has_memory = plan_row(plan, (uint32_t)(i % plan->nodes), i / plan->nodes, &row) == ESP_OK && append(rows, &row);
	}
	plan_row_fini(&row);
	return has_memory;
}

enum esp_status plan_rows_open(const struct plan *plan, struct plan_rows **out, struct error *err)
{
	struct plan_rows *rows = calloc(1, sizeof(*rows));

	if (rows) {
		rows->plan = plan;
		rows->first = calloc(plan->chunks.chunk_count * plan->nodes + 1, sizeof(*rows->first));
	}
	if (!rows || !append_all(rows)) {
		plan_rows_close(rows);
		return error_set(err, ESP_ENOMEM, "no memory for the rows of %u nodes and %llu chunks", plan->nodes,
		                 (unsigned long long)plan->chunks.chunk_count);
	}
	*out = rows;
	return ESP_OK;
}

void plan_rows_close(struct plan_rows *rows)
{
	if (!rows)
		return;
	free(rows->steps);
	free(rows->first);
	free(rows);
}

/* ---- sharing ---- */

static bool is_same_table(const uint32_t *a, const uint32_t *b, uint64_t count)
{
	return !a == !b && (!a || memcmp(a, b, count * sizeof(*a)) == 0);
}

/* Everything that a planner looks at but sizes. */
static bool is_alike(const struct plan *a, const struct plan *b)
{
	const struct chunks *of_a = &a->chunks, *of_b = &b->chunks;
	uint64_t chunks = of_a->chunk_count, groups = a->group_count, zones = a->zone_count;

	/* Blocks that are listed, and rows that were read, would have to be compared one by one. */
	if (of_a->blocks || of_b->blocks || a->row_at || b->row_at)
		return false;
	return a->planner == b->planner && a->workers == b->workers && a->nodes == b->nodes && a->servers == b->servers &&
	       a->switches == b->switches && a->in_place == b->in_place && a->fanout == b->fanout &&
	       a->level_count == b->level_count && memcmp(a->level_first, b->level_first, sizeof(a->level_first)) == 0 &&
	       of_a->collective == of_b->collective && of_a->root == of_b->root && of_a->block_count == of_b->block_count &&
	       chunks == of_b->chunk_count && groups == b->group_count && zones == b->zone_count &&
	       is_same_table(a->group_of, b->group_of, a->nodes) && is_same_table(a->order, b->order, a->workers) &&
	       is_same_table(a->owner, b->owner, chunks) && is_same_table(a->global_group, b->global_group, chunks) &&
	       is_same_table(a->local_master, b->local_master, groups * chunks) &&
	       is_same_table(a->member, b->member, a->workers) &&
	       is_same_table(a->member_first, b->member_first, groups + 1) &&
	       is_same_table(a->zone_of, b->zone_of, groups) && is_same_table(a->zone_group, b->zone_group, groups) &&
	       is_same_table(a->zone_first, b->zone_first, zones + 1) &&
	       is_same_table(a->zone_top, b->zone_top, zones * chunks) &&
	       is_same_table(a->owner_zone, b->owner_zone, chunks);
}

bool plan_rows_share(struct plan *plan, const struct plan_rows *rows)
{
	if (!is_alike(plan, rows->plan))
		return false;
	plan->rows = rows;
	return true;
}

struct plan_row plan_rows_at(const struct plan_rows *rows, uint32_t node, uint64_t chunk)
{
	struct plan_step *head = &rows->steps[rows->first[chunk * rows->plan->nodes + node]];

	return (struct plan_row){.steps = head + 1, .count = head->count, .tmp_count = head->place};
}
