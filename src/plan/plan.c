#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/partition.h"
#include "plan/planner.h"
#include "plan/rows.h"

static const struct planner *const planners[] = {
	&planner_ring,   &planner_halving_doubling, &planner_butterfly,   &planner_exchange,
	&planner_tree,   &planner_double_tree,      &planner_flat,        &planner_central,
	&planner_twin,   &planner_two_level,        &planner_three_level, &planner_hub,
	&planner_switch, &planner_switch_sum,       &planner_switch_copy, &planner_ring_switch,
};

const struct planner *plan_planner(unsigned index)
{
	return index < sizeof(planners) / sizeof(planners[0]) ? planners[index] : NULL;
}

const struct planner *plan_planner_find(const char *name)
{
	for (unsigned i = 0; plan_planner(i); i++) {
		if (strcmp(planners[i]->name, name) == 0)
			return planners[i];
	}
	return NULL;
}

const char *plan_planner_name(const struct planner *planner)
{
	return planner->name;
}

const char *plan_planner_summary(const struct planner *planner)
{
	return planner->summary;
}

bool plan_planner_needs_groups(const struct planner *planner)
{
	return planner->needs_groups;
}

bool plan_planner_has_extra(const struct planner *planner)
{
	return planner->has_extra;
}

/* Groups are numbered 0 .. G-1 and none is empty. */
static enum esp_status count_groups(const uint32_t *group_of, uint32_t workers, uint32_t *out_count, struct error *err)
{
	uint32_t count = 0;
	uint8_t *seen = calloc(workers, 1);

	if (!seen)
		return error_set(err, ESP_ENOMEM, "no memory for groups");
	for (uint32_t i = 0; i < workers; i++) {
		if (group_of[i] >= workers) {
			free(seen);
			return error_set(err, ESP_EINVAL, "node %u is in group %u: groups are numbered from 0 up to at most %u",
			                 i, group_of[i], workers - 1);
		}
		seen[group_of[i]] = 1;
		if (group_of[i] + 1 > count)
			count = group_of[i] + 1;
	}
	for (uint32_t g = 0; g < count; g++) {
		if (!seen[g]) {
			free(seen);
			return error_set(err, ESP_EINVAL, "group %u of %u has no node", g, count);
		}
	}
	free(seen);
	*out_count = count;
	return ESP_OK;
}

static enum esp_status copy_groups(struct plan *plan, const uint32_t *group_of, struct error *err)
{
	enum esp_status status = count_groups(group_of, plan->workers, &plan->group_count, err);

	if (status != ESP_OK)
		return status;
	plan->group_of = malloc(plan->workers * sizeof(*plan->group_of));
	if (!plan->group_of)
		return error_set(err, ESP_ENOMEM, "no memory for groups");
	memcpy(plan->group_of, group_of, plan->workers * sizeof(*group_of));
	return ESP_OK;
}

static enum esp_status copy_order(struct plan *plan, const uint32_t *order, struct error *err)
{
	uint32_t workers = plan->workers;

	plan->order = malloc(workers * sizeof(*plan->order));
	plan->seat_of = malloc(workers * sizeof(*plan->seat_of));
	if (!plan->order || !plan->seat_of)
		return error_set(err, ESP_ENOMEM, "no memory for the order of %u nodes", workers);
	memset(plan->seat_of, 0xff, workers * sizeof(*plan->seat_of));
	for (uint32_t seat = 0; seat < workers; seat++) {
		if (order[seat] >= workers)
			return error_set(err, ESP_EINVAL, "the order has node %u, and there are the nodes 0 to %u", order[seat],
			                 workers - 1);
		if (plan->seat_of[order[seat]] != UINT32_MAX)
			return error_set(err, ESP_EINVAL, "node %u is in the order twice", order[seat]);
		plan->order[seat] = order[seat];
		plan->seat_of[order[seat]] = seat;
	}
	return ESP_OK;
}

static enum esp_status plan_fill(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	const struct planner *planner = plan->planner;
	enum esp_status status = plan_chunks_init(&plan->chunks, &spec->chunks, err);

	if (status != ESP_OK)
		return status;
	if (plan->in_place && spec->chunks.collective == PLAN_ALLTOALL)
		return error_set(err, ESP_EINVAL, "alltoall cannot be done in place: what is sent to a node lies "
		                 "where its answer goes");
	if (planner->needs_groups && !spec->group_of)
		return error_set(err, ESP_EINVAL, "%s needs to know the group of each node", planner->name);
	if (spec->group_of) {
		status = copy_groups(plan, spec->group_of, err);
		if (status != ESP_OK)
			return status;
	}
	if (spec->order && (planner->needs_groups || planner->has_extra))
		return error_set(err, ESP_EINVAL, "%s takes no order: its groups and switches say which are near",
		                 planner->name);
	if (spec->order) {
		status = copy_order(plan, spec->order, err);
		if (status != ESP_OK)
			return status;
	}
	return planner->prepare ? planner->prepare(plan, spec, err) : ESP_OK;
}

enum esp_status plan_open(const struct planner *planner, const struct plan_spec *spec, struct plan **out,
                          struct error *err)
{
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return error_set(err, ESP_ENOMEM, "no memory for a plan");
	plan->planner = planner;
	plan->workers = spec->chunks.workers;
	plan->nodes = spec->chunks.workers;
	plan->in_place = spec->in_place;
	enum esp_status status = plan_fill(plan, spec, err);
	if (status != ESP_OK) {
		plan_close(plan);
		return status;
	}
	*out = plan;
	return ESP_OK;
}

void plan_close(struct plan *plan)
{
	if (!plan)
		return;
	plan_chunks_fini(&plan->chunks);
	free(plan->group_of);
	free(plan->order);
	free(plan->seat_of);
	free(plan->owner);
	free(plan->global_group);
	free(plan->local_master);
	free(plan->member);
	free(plan->member_first);
	free(plan->zone_of);
	free(plan->zone_group);
	free(plan->zone_first);
	free(plan->zone_top);
	free(plan->owner_zone);
	free(plan->steps);
	free(plan->row_at);
	free(plan->turns);
	free(plan);
}

static void note_tmp(struct plan_row *row, uint32_t place)
{
	if (place >= PLAN_TMP && place - PLAN_TMP >= row->tmp_count)
		row->tmp_count = place - PLAN_TMP + 1;
}

static void stored_row(const struct plan *plan, uint32_t node, uint64_t chunk, struct plan_row *row)
{
	const struct plan_step *head = &plan->steps[plan->row_at[chunk * plan->nodes + node]];

	for (const struct plan_step *step = head + 1; step <= head + head->count; step++) {
		plan_row_step(row, *step);
		note_tmp(row, step->place);
		if (step->verb == PLAN_COPY)
			note_tmp(row, step->source);
	}
}

struct plan_piece plan_seated_piece(const struct plan *plan, uint64_t chunk)
{
	struct plan_piece piece = plan_chunks_piece(&plan->chunks, chunk);

	piece.from = plan_seat(plan, piece.from); /* PLAN_ALL is beyond all workers */
	piece.to = plan_seat(plan, piece.to);
	return piece;
}

/* The row of a position becomes that of the worker that has it. */
static void unseat(const struct plan *plan, struct plan_row *row)
{
	for (uint32_t i = 0; i < row->count; i++) {
		struct plan_step *step = &row->steps[i];

		if (step->verb == PLAN_SEND || step->verb == PLAN_RECV || step->verb == PLAN_TERM)
			step->node = plan_seated(plan, step->node);
	}
}

static void row_copy_steps(struct plan_row *row, struct plan_row kept)
{
	for (uint32_t i = 0; i < kept.count; i++)
		plan_row_step(row, kept.steps[i]);
	row->tmp_count = kept.tmp_count;
}

enum esp_status plan_row(const struct plan *plan, uint32_t node, uint64_t chunk, struct plan_row *row)
{
	const struct planner *planner = plan->planner;

	plan_row_clear(row);
	if (plan->rows) {
		row_copy_steps(row, plan_rows_at(plan->rows, node, chunk));
	} else if (plan->row_at) {
		stored_row(plan, node, chunk, row);
	} else {
		uint32_t seat = plan_seat(plan, node);
		bool done = false;

		if (planner->row) {
			struct plan_piece piece = plan_seated_piece(plan, chunk);
			done = planner->row(plan, seat, &piece, row);
		}
		if (!done)
			plan_route_row(planner, plan, seat, chunk, row);
		if (plan->order)
			unseat(plan, row);
	}
	return row->failed ? ESP_ENOMEM : ESP_OK;
}

#define LAP_FROM 16u

uint32_t plan_allreduce_lap(const struct plan *plan, uint32_t owners, uint32_t each)
{
	uint64_t lap = (uint64_t)(each ? each : LAP_CHUNKS) * owners, count = plan->chunks.chunk_count;

	if (plan->chunks.collective != PLAN_ALLREDUCE || count <= LAP_FROM)
		return 1;
	return (uint32_t)(lap < count ? lap : count);
}

/* The turn in the text. 0: it has no such message, and the checker says so. */
static uint32_t stored_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	const struct plan_sent *head = &plan->turns[plan->row_at[chunk * plan->nodes + from]], *sent = head + 1;
	uint32_t low = 0, high = head->to;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sent[middle].to < to)
			low = middle + 1;
		else
			high = middle;
	}
	return nth < head->to - low && sent[low + nth].to == to ? sent[low + nth].turn : 0;
}

uint32_t plan_turn(const struct plan *plan, uint64_t chunk, uint32_t from, uint32_t to, uint32_t nth)
{
	if (plan->lap <= 1)
		return 0;
	if (plan->turns)
		return stored_turn(plan, chunk, from, to, nth);
	return plan->planner->turn(plan, chunk, plan_seat(plan, from), plan_seat(plan, to), nth);
}

/* The first block from `block` on with node on one of its two sides; blocks are those of a pairwise collective. */
static uint64_t next_pair_block(const struct chunks *chunks, uint32_t node, uint64_t block)
{
	uint64_t n = chunks->workers;

	switch (chunks->collective) {
	case PLAN_GATHER:
	case PLAN_SCATTER:
		if (node == chunks->root)
			return block;
		return block <= node ? node : chunks->block_count;
	case PLAN_ALLTOALL: {
		uint64_t from = block / n, to = block % n;

		if (from == node)
			return block;
		return to <= node ? from * n + node : from + 1 == node ? node * n : (from + 1) * n + node;
	}
	default:
		return block;
	}
}

uint64_t plan_next_chunk(const struct plan *plan, uint32_t node, uint64_t chunk)
{
	const struct chunks *chunks = &plan->chunks;

	if (chunk >= chunks->chunk_count)
		return chunks->chunk_count;
	if (plan->row_at || !plan->planner->direct || chunks->blocks || node >= plan->workers)
		return chunk;
	uint64_t block = chunk / chunks->equal_pieces;
	uint64_t next = next_pair_block(chunks, node, block);
	if (next == block)
		return chunk;
	return next < chunks->block_count ? next * chunks->equal_pieces : chunks->chunk_count;
}

uint32_t plan_pair(const struct plan *plan, const struct plan_piece *piece, uint32_t out[2])
{
	if (plan->row_at || !plan->planner->direct || piece->from == PLAN_ALL || piece->to == PLAN_ALL)
		return 0;
	out[0] = piece->from < piece->to ? piece->from : piece->to;
	out[1] = piece->from ^ piece->to ^ out[0];
	return out[0] == out[1] ? 1 : 2;
}

bool plan_aliases(const struct plan *plan, const struct plan_piece *piece, uint32_t node, uint8_t a, uint8_t b)
{
	if (a == b)
		return true;
	return plan->in_place && a <= PLAN_OUT && b <= PLAN_OUT && piece_gives(&plan->chunks, piece, node) &&
	       piece_wants(&plan->chunks, piece, node);
}

/* ---- tables of owners ---- */

enum esp_status plan_add_nodes(struct plan *plan, uint32_t count, struct error *err)
{
	if (count > PLANNER_NODES_MAX - plan->nodes)
		return error_set(err, ESP_ELIMIT, "%u extra nodes: there are at most %u nodes in all", count,
		                 PLANNER_NODES_MAX);
	plan->nodes += count;
	if (!plan->group_of)
		return ESP_OK;
	uint32_t *group_of = realloc(plan->group_of, plan->nodes * sizeof(*group_of));
	if (!group_of)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", plan->nodes);
	plan->group_of = group_of;
	return ESP_OK;
}

/* Is the owner of the collective's chunks free to be spread? */
static bool owners_are_free(enum plan_collective collective)
{
	return collective == PLAN_ALLREDUCE || collective == PLAN_BARRIER || collective == PLAN_BROADCAST;
}

enum esp_status plan_spread_owners(struct plan *plan, uint32_t bins, struct error *err)
{
	uint64_t count = plan->chunks.chunk_count;

	if (!owners_are_free(plan->chunks.collective) || count == 0)
		return ESP_OK;
	uint64_t *sizes = calloc(count, sizeof(*sizes));
	plan->owner = calloc(count, sizeof(*plan->owner));
	if (!sizes || !plan->owner) {
		free(sizes);
		return error_set(err, ESP_ENOMEM, "no memory for the owners of %llu chunks", (unsigned long long)count);
	}
	for (uint64_t c = 0; c < count; c++)
		sizes[c] = plan_chunks_piece(&plan->chunks, c).bytes;
	enum esp_status status = plan_partition_lpt(sizes, count, NULL, bins, plan->owner);
	free(sizes);
	return status;
}

enum esp_status plan_move_owner(struct plan *plan, uint64_t chunk, uint32_t node)
{
	if (!plan->owner || !plan->planner->movable || chunk >= plan->chunks.chunk_count || node >= plan->workers)
		return ESP_EINVAL;
	plan->owner[chunk] = plan_seat(plan, node);
	plan->rows = NULL;
	return ESP_OK;
}

enum esp_status plan_move_local(struct plan *plan, uint64_t chunk, uint32_t group, uint32_t node)
{
	if (!plan->local_master || chunk >= plan->chunks.chunk_count || group >= plan->group_count ||
	    node >= plan->workers || plan->group_of[node] != group)
		return ESP_EINVAL;
	plan->local_master[group * plan->chunks.chunk_count + chunk] = node;
	plan->rows = NULL;
	return ESP_OK;
}

enum esp_status plan_move_global(struct plan *plan, uint64_t chunk, uint32_t group)
{
	if (!plan->global_group || chunk >= plan->chunks.chunk_count || group >= plan->group_count)
		return ESP_EINVAL;
	plan->global_group[chunk] = group;
	plan->rows = NULL;
	return ESP_OK;
}
