/*
 * double_tree.c - two binary trees, each for every other chunk; no node is inner in both (but for the root of a
 * rooted collective, which is the top of both). Pure.
 *
 * A single tree leaves the links of half of the nodes, its leaves, idle. The second tree makes inner nodes of
 * them (Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
 * 2009). Vertices are numbered in order, 1 to N: vertex v has its left subtree below and its right subtree
 * above it, and odd vertices are leaves:
 *
 *              4              tree 0: vertex = rank + 1
 *          2       6          tree 1: the mirror image (N even), or shifted by one (N odd),
 *        1   3   5   7                so that odd and even change places
 */
#include "plan/planner.h"

static uint32_t low_bit(uint32_t v)
{
	return v & -v;
}

/* The parent of v in the in-order tree 1..n; v is not the top. Vertices beyond n are skipped. */
static uint32_t order_up(uint32_t v, uint32_t n)
{
	do
		v = v & low_bit(v) << 1 ? v - low_bit(v) : v + low_bit(v);
	while (v > n);
	return v;
}

/* The root of the right subtree of v, or 0. */
static uint32_t order_right(uint32_t v, uint32_t n)
{
	uint32_t child = v + low_bit(v) / 2;

	if (low_bit(v) == 1)
		return 0;
	while (child > n) {
		if (low_bit(child) == 1)
			return 0;
		child -= low_bit(child) / 2;
	}
	return child;
}

static uint32_t order_left(uint32_t v)
{
	return low_bit(v) == 1 ? 0 : v - low_bit(v) / 2;
}

static uint32_t order_top(uint32_t n)
{
	uint32_t top = 1;

	while (top <= n / 2)
		top *= 2;
	return top;
}

/* ---- ranks and vertices ---- */

static uint32_t vertex_label(uint32_t label, uint32_t n, bool second)
{
	if (!second)
		return label + 1;
	return n % 2 == 0 ? n - label : (label + 1) % n + 1;
}

static uint32_t label_of_vertex(uint32_t v, uint32_t n, bool second)
{
	if (!second)
		return v - 1;
	return n % 2 == 0 ? n - v : (v + n - 2) % n;
}

/* Rooted collectives rotate the ranks so that the root is the top of both trees: label = rank + turn (mod n). */
static uint32_t tree_turn(const struct route *route)
{
	uint32_t n = route->plan->workers;
	uint32_t top = label_of_vertex(order_top(n), n, route->chunk % 2);

	return (top + n - route->owner) % n;
}

static uint32_t to_vertex(const struct route *route, uint32_t rank)
{
	uint32_t n = route->plan->workers;

	return vertex_label((rank + tree_turn(route)) % n, n, route->chunk % 2);
}

static uint32_t to_rank(const struct route *route, uint32_t v)
{
	uint32_t n = route->plan->workers;

	return (label_of_vertex(v, n, route->chunk % 2) + n - tree_turn(route)) % n;
}

/* ---- the planner ---- */

static uint32_t double_owner(const struct route *route)
{
	uint32_t n = route->plan->workers;

	if (route->piece.to != PLAN_ALL)
		return route->piece.to;
	if (route->piece.from != PLAN_ALL)
		return route->piece.from;
	return label_of_vertex(order_top(n), n, route->chunk % 2);
}

static uint32_t double_up(const struct route *route, uint32_t node)
{
	return to_rank(route, order_up(to_vertex(route, node), route->plan->workers));
}

/* The children by ascending rank; absent ones are PLAN_NONE, and come last. */
static void children(const struct route *route, uint32_t node, uint32_t out[2])
{
	uint32_t v = to_vertex(route, node);
	uint32_t left = order_left(v), right = order_right(v, route->plan->workers);
	uint32_t a = left ? to_rank(route, left) : PLAN_NONE;
	uint32_t b = right ? to_rank(route, right) : PLAN_NONE;

	out[0] = a < b ? a : b;
	out[1] = a < b ? b : a;
}

static void double_gather(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t child[2], self = 0;

	children(route, node, child);
	while (self < 2 && child[self] < node)
		self++;
	plan_fold_begin(builder);
	for (uint32_t i = 0; i <= 2; i++) {
		if (i == self)
			plan_fold_self(builder);
		if (i < 2 && child[i] != PLAN_NONE)
			plan_fold_from(builder, child[i]);
	}
	plan_fold_end(builder);
}

static void double_spread(const struct route *route, uint32_t node, struct route_builder *builder)
{
	uint32_t child[2];

	children(route, node, child);
	for (uint32_t i = 0; i < 2 && child[i] != PLAN_NONE; i++)
		plan_fan_to(builder, child[i]);
}

const struct planner planner_double_tree = {
	.name = "double-tree",
	.summary = "two binary trees, each for every other chunk: few rounds, all links used",
	.owner = double_owner,
	.up = double_up,
	.down = double_up,
	.gather = double_gather,
	.spread = double_spread,
};
