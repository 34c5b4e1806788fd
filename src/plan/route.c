/*
 * route.c - rows from trees: up to the owner, down to its receivers.
 *
 *     contributors          owner           receivers
 *        fetch ──send──▶ recv+ ... update ──send──▶ recv= ... deliver
 *
 * With one contributor the way up is a path, and every node on it holds the final data already: it passes it on from
 * there, and it is not sent the chunk again.
 */
#include <stdlib.h>

#include "plan/planner.h"

struct route_builder {
	const struct route *route;
	struct plan_row *row;
	uint32_t node;
	uint8_t have; /* the place of what this node has so far, or PLAN_PLACE_NONE */
	uint8_t home; /* where this node's sums go: the output, or scratch          */
	uint32_t fold_at; /* step index of the fold being built */
};

uint32_t plan_route_fixed_owner(const struct route *route)
{
	if (route->piece.to != PLAN_ALL)
		return route->piece.to;
	if (route->piece.from != PLAN_ALL && route->plan->chunks.collective != PLAN_BROADCAST)
		return route->piece.from;
	return PLAN_NONE;
}

/* ---- folds ---- */

static uint8_t builder_home(struct route_builder *builder)
{
	if (builder->home == PLAN_PLACE_NONE)
		builder->home = plan_row_tmp(builder->row);
	return builder->home;
}

void plan_fold_begin(struct route_builder *builder)
{
	builder->fold_at = builder->row->count;
	plan_row_fold(builder->row, PLAN_PLACE_NONE, 0);
}

void plan_fold_from(struct route_builder *builder, uint32_t node)
{
	plan_row_term(builder->row, node);
}

void plan_fold_self(struct route_builder *builder)
{
	if (builder->have != PLAN_PLACE_NONE)
		plan_row_local(builder->row, builder->have);
}

/* A term beyond the second that shares memory with the target would be lost before its turn. */
static uint32_t late_alias(const struct route_builder *builder, const struct plan_step *terms, uint32_t count)
{
	const struct route *route = builder->route;

	for (uint32_t i = 2; i < count; i++) {
		if (terms[i].verb == PLAN_LOCAL &&
		    plan_aliases(route->plan, &route->piece, builder->node, terms[i].place, builder->home))
			return i;
	}
	return 0;
}

/* Turns  X < a b c X d  into  tmp < a b c;  X < tmp X d. */
static void split_fold(struct route_builder *builder, uint32_t at)
{
	struct plan_row *row = builder->row;
	uint32_t first = builder->fold_at, count = row->steps[first].count;
	uint8_t tmp = plan_row_tmp(row);

	plan_row_local(row, 0); /* two more steps at the end: room for the second fold and its first term */
	plan_row_local(row, 0);
	if (row->failed)
		return;
	struct plan_step *terms = &row->steps[first + 1];
	for (uint32_t i = count; i-- > at;)
		terms[i + 2] = terms[i];
	row->steps[first].place = tmp;
	row->steps[first].count = at;
	terms[at] = (struct plan_step){.verb = PLAN_FOLD, .place = builder->home, .count = count - at + 1};
	terms[at + 1] = (struct plan_step){.verb = PLAN_LOCAL, .place = tmp};
}

void plan_fold_end(struct route_builder *builder)
{
	struct plan_row *row = builder->row;

	if (row->failed)
		return;
	uint32_t count = row->count - builder->fold_at - 1;
	struct plan_step *fold = &row->steps[builder->fold_at];

	if (count == 0 || (count == 1 && fold[1].verb == PLAN_LOCAL)) {
		row->count = builder->fold_at; /* nothing to add: what we have stays as it is */
		return;
	}
	uint8_t home = builder_home(builder);
	fold = &row->steps[builder->fold_at];
	if (count == 1) {
		uint32_t from = fold[1].node;

		row->count = builder->fold_at;
		plan_row_recv(row, home, from);
	} else {
		fold->place = home;
		fold->count = count;
		uint32_t at = late_alias(builder, fold + 1, count);
		if (at)
			split_fold(builder, at);
	}
	builder->have = home;
}

void plan_fold_pair(struct route_builder *builder, uint32_t self, uint32_t other)
{
	plan_fold_begin(builder);
	if (other < self)
		plan_fold_from(builder, other);
	plan_fold_self(builder);
	if (other > self)
		plan_fold_from(builder, other);
	plan_fold_end(builder);
}

/* ---- paths ---- */

/*
 * Where what `far` contributes comes from when it reaches node on its way to the owner:
 * the neighbour, node itself if it is `far`, or PLAN_NONE if the way does not pass here.
 */
static uint32_t arrives_from(const struct planner *planner, const struct route *route, uint32_t node, uint32_t far)
{
	for (uint32_t at = far, before = far;; before = at, at = planner->up(route, at)) {
		if (at == node)
			return before;
		if (at == route->owner)
			return PLAN_NONE;
	}
}

/* The same, for the way down from the owner to `far`: the next hop from node. */
static uint32_t leaves_to(const struct planner *planner, const struct route *route, uint32_t node, uint32_t far)
{
	for (uint32_t at = far, after = far;; after = at, at = planner->down(route, at)) {
		if (at == node)
			return after;
		if (at == route->owner)
			return PLAN_NONE;
	}
}

/* Does node hold the final data before anything is spread? Only on the path of a lone contributor. */
static bool holds_already(const struct planner *planner, const struct route *route, uint32_t node)
{
	if (node == route->owner)
		return true;
	return route->piece.from != PLAN_ALL &&
	       arrives_from(planner, route, node, route->piece.from) != PLAN_NONE;
}

void plan_fan_to(struct route_builder *builder, uint32_t node)
{
	if (!holds_already(builder->route->plan->planner, builder->route, node))
		plan_row_send(builder->row, builder->have, node);
}

/* ---- the row ---- */

static void collect(const struct planner *planner, struct route_builder *builder)
{
	const struct route *route = builder->route;
	struct plan_row *row = builder->row;
	uint32_t node = builder->node, from = node;

	if (route->piece.from != PLAN_ALL)
		from = arrives_from(planner, route, node, route->piece.from);
	if (from == PLAN_NONE)
		return;
	if (from != node) {
		builder->have = builder_home(builder);
		plan_row_recv(row, builder->have, from);
	} else if (piece_gives(&route->plan->chunks, &route->piece, node)) {
		plan_row_fetch(row);
		builder->have = PLAN_IN;
	}
	if (route->piece.from == PLAN_ALL)
		planner->gather(route, node, builder);
	if (node != route->owner && builder->have != PLAN_PLACE_NONE)
		plan_row_send(row, builder->have, planner->up(route, node));
}

/* The sum is complete here: what is done once is done in memory that may be written. */
static void complete(struct route_builder *builder)
{
	if (builder->have == PLAN_IN) {
		const struct route *route = builder->route;
		uint8_t home = builder_home(builder);

		if (!plan_aliases(route->plan, &route->piece, builder->node, home, PLAN_IN))
			plan_row_copy(builder->row, home, PLAN_IN);
		builder->have = home;
	}
	plan_row_update(builder->row, builder->have);
}

static void distribute(const struct planner *planner, struct route_builder *builder)
{
	const struct route *route = builder->route;
	uint32_t node = builder->node, to = PLAN_NONE;

	if (route->piece.to != PLAN_ALL) {
		to = leaves_to(planner, route, node, route->piece.to);
		if (to == PLAN_NONE)
			return;
	}
	if (!holds_already(planner, route, node)) {
		uint32_t before = planner->down(route, node);

		if (before == PLAN_NONE)
			return;
		builder->have = builder_home(builder);
		plan_row_recv(builder->row, builder->have, before);
	}
	if (route->piece.to == PLAN_ALL)
		planner->spread(route, node, builder);
	else if (to != node)
		plan_fan_to(builder, to);
}

static void deliver(struct route_builder *builder)
{
	const struct route *route = builder->route;

	if (!piece_wants(&route->plan->chunks, &route->piece, builder->node))
		return;
	if (!plan_aliases(route->plan, &route->piece, builder->node, builder->have, PLAN_OUT))
		plan_row_copy(builder->row, PLAN_OUT, builder->have);
	plan_row_deliver(builder->row);
}

void plan_route_row(const struct planner *planner, const struct plan *plan, uint32_t node, uint64_t chunk,
                    struct plan_row *row)
{
	struct route route = {.plan = plan, .chunk = chunk, .piece = plan_seated_piece(plan, chunk)};
	bool wants = piece_wants(&plan->chunks, &route.piece, node);
	struct route_builder builder = {
		.route = &route,
		.row = row,
		.node = node,
		.have = PLAN_PLACE_NONE,
		.home = wants ? PLAN_OUT : PLAN_PLACE_NONE,
	};

	route.owner = planner->owner(&route);
	/* A lone receiver that the way up passes need not wait for the owner. */
	if (route.piece.from != PLAN_ALL && route.piece.to != PLAN_ALL &&
	    arrives_from(planner, &route, route.piece.to, route.piece.from) != PLAN_NONE)
		route.owner = route.piece.to;
	collect(planner, &builder);
	if (node == route.owner && plan_collective_reduces(plan->chunks.collective))
		complete(&builder);
	distribute(planner, &builder);
	deliver(&builder);
}
