/*
 * tree.c - one tree of any fan-out for all chunks: sums go up, results go down. Pure.
 *
 * Two forms. In the first the inner nodes are workers too (a heap, rotated so that the root of the collective
 * is its top):
 *
 *            0                     In the second the workers are the leaves, and the
 *          /   \                   inner nodes are extra nodes that only add and copy:
 *         1     2
 *        / \   / \                          6
 *       3   4 5   6                      4     5
 *                                       0 1   2 3
 */
#include <stdlib.h>

#include "plan/planner.h"

#define TREE_FANOUT 2u

/* ---- workers as inner nodes ---- */

static uint32_t heap_place(const struct route *route, uint32_t node)
{
	uint32_t n = route->plan->workers;

	return node >= route->owner ? node - route->owner : node + n - route->owner;
}

static uint32_t heap_node(const struct route *route, uint64_t place)
{
	return (uint32_t)((place + route->owner) % route->plan->workers);
}

static uint32_t heap_up(const struct route *route, uint32_t node)
{
	return heap_node(route, (heap_place(route, node) - 1) / route->plan->fanout);
}

static void heap_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint64_t n = route->plan->workers, first = (uint64_t)heap_place(route, node) * route->plan->fanout + 1;
	uint64_t end = first + route->plan->fanout < n ? first + route->plan->fanout : n;

	/* By ascending number: children whose numbers wrapped around come first. */
	plan_fold_begin(builder);
	for (uint64_t place = first; place < end; place++) {
		if (heap_node(route, place) < node)
			plan_fold_from(builder, heap_node(route, place));
	}
	plan_fold_self(builder);
	for (uint64_t place = first; place < end; place++) {
		if (heap_node(route, place) > node)
			plan_fold_from(builder, heap_node(route, place));
	}
	plan_fold_end(builder);
}

static void heap_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint64_t n = route->plan->workers, first = (uint64_t)heap_place(route, node) * route->plan->fanout + 1;

	for (uint64_t place = first; place < first + route->plan->fanout && place < n; place++)
		plan_fan_to(builder, heap_node(route, place));
}

/* ---- workers as leaves: level 0 are the workers, the last level is one node ---- */

static uint32_t leaf_level(const struct plan *plan, uint32_t node)
{
	uint32_t level = 0;

	while (node >= plan->level_first[level + 1])
		level++;
	return level;
}

static uint32_t leaf_up(const struct plan *plan, uint32_t node)
{
	uint32_t level = leaf_level(plan, node);

	return plan->level_first[level + 1] + (node - plan->level_first[level]) / plan->fanout;
}

/* The children of node are out_first .. out_end - 1; none for a worker. */
static void leaf_children(const struct plan *plan, uint32_t node, uint32_t *out_first, uint32_t *out_end)
{
	uint32_t level = leaf_level(plan, node);

	*out_first = *out_end = 0;
	if (level == 0)
		return;
	uint64_t first =
		plan->level_first[level - 1] + (uint64_t)(node - plan->level_first[level]) * plan->fanout;
	uint64_t end = first + plan->fanout;
	*out_first = (uint32_t)first;
	*out_end = (uint32_t)(end < plan->level_first[level] ? end : plan->level_first[level]);
}

static enum esp_status leaf_prepare(struct plan *plan, struct error *err)
{
	uint32_t width = plan->workers, first = 0;

	plan->level_first[0] = 0;
	for (plan->level_count = 1; width > 1; plan->level_count++) {
		first += width;
		width = (width - 1) / plan->fanout + 1;
		plan->level_first[plan->level_count] = first;
	}
	plan->nodes = first + 1;
	plan->level_first[plan->level_count] = plan->nodes;
	if (!plan->group_of)
		return ESP_OK;
	/* An inner node is in the group of its first leaf. */
	uint32_t *group_of = realloc(plan->group_of, plan->nodes * sizeof(*group_of));
	if (!group_of)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", plan->nodes);
	plan->group_of = group_of;
	for (uint32_t node = plan->workers; node < plan->nodes; node++) {
		uint32_t first_child, end;

		leaf_children(plan, node, &first_child, &end);
		group_of[node] = group_of[plan_seated(plan, first_child)];
	}
	return ESP_OK;
}

/* ---- the planner ---- */

static bool has_leaves(const struct route *route)
{
	return route->plan->level_count > 0;
}

static enum esp_status tree_prepare(struct plan *plan, const struct plan_spec *spec, struct error *err)
{
	plan->fanout = spec->fanout ? spec->fanout : TREE_FANOUT;
	if (spec->leaves && plan->fanout < 2)
		return error_set(err, ESP_EINVAL, "a tree whose leaves are the workers needs a fan-out of 2 or more");
	return spec->leaves ? leaf_prepare(plan, err) : ESP_OK;
}

static uint32_t tree_owner(const struct route *route)
{
	if (has_leaves(route))
		return route->plan->nodes - 1;
	if (route->piece.to != PLAN_ALL)
		return route->piece.to;
	return route->piece.from != PLAN_ALL ? route->piece.from : 0;
}

static uint32_t tree_up(const struct route *route, uint32_t node)
{
	return has_leaves(route) ? leaf_up(route->plan, node) : heap_up(route, node);
}

static void tree_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t child, end;

	if (!has_leaves(route)) {
		heap_gather(route, node, builder);
		return;
	}
	leaf_children(route->plan, node, &child, &end);
	plan_fold_begin(builder);
	plan_fold_self(builder);
	for (; child < end; child++)
		plan_fold_from(builder, child);
	plan_fold_end(builder);
}

static void tree_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t child, end;

	if (!has_leaves(route)) {
		heap_spread(route, node, builder);
		return;
	}
	leaf_children(route->plan, node, &child, &end);
	for (; child < end; child++)
		plan_fan_to(builder, child);
}

const struct planner planner_tree = {
	.name = "tree",
	.summary = "one tree of any fan-out: few rounds for small buffers, inner nodes carry most",
	.prepare = tree_prepare,
	.owner = tree_owner,
	.up = tree_up,
	.down = tree_up,
	.gather = tree_gather,
	.spread = tree_spread,
};
