#include "network/discover/assign.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define SLACK 1e-12 /* of the largest cost: smaller improvements of a chain are rounding */

/* The cheapest move from one group to another. */
struct move {
	double cost;   /* added to the sum; INFINITY: the group is empty */
	uint32_t node;
};

struct assignment {
	const double *cost;
	uint32_t nodes, groups, least;
	uint32_t *group_of;
	double slack;
	uint32_t *sizes;
	struct move *moves; /* groups * groups */
	uint32_t *members;  /* all nodes, group by group         */
	uint32_t *end;      /* where the members of each group end */
	double *cheapest;   /* by node: the cost of its current group */
	double *reach;      /* by group: cost of the cheapest chain to it */
	bool *changed;      /* groups that the last chain changed */
	uint32_t *before;   /* the previous group in that chain; NONE: the chain begins there */
};

static const double *costs_of(const struct assignment *all, uint32_t group)
{
	return all->cost + (size_t)group * all->nodes;
}

static void assign_cheapest(struct assignment *all)
{
	double most = 0;

	for (uint32_t group = 0; group < all->groups; group++) {
		const double *cost = costs_of(all, group);

		for (uint32_t node = 0; node < all->nodes; node++) {
			most = fmax(most, fabs(cost[node]));
			if (group == 0 || cost[node] < all->cheapest[node]) {
				all->cheapest[node] = cost[node];
				all->group_of[node] = group;
			}
		}
	}
	all->slack = most * SLACK;
	for (uint32_t node = 0; node < all->nodes; node++)
		all->sizes[all->group_of[node]]++;
}

static void list_members(struct assignment *all)
{
	uint32_t start = 0;

	for (uint32_t group = 0; group < all->groups; group++) {
		all->end[group] = start;
		start += all->sizes[group];
	}
	for (uint32_t node = 0; node < all->nodes; node++)
		all->members[all->end[all->group_of[node]]++] = node;
}

/* The cheapest moves out of the changed groups; NULL: of all groups. */
static void find_moves(struct assignment *all, const bool *changed)
{
	list_members(all);
	for (uint32_t from = 0; from < all->groups; from++) {
		const double *here = costs_of(all, from);

		for (uint32_t to = 0; to < all->groups && (!changed || changed[from]); to++) {
			const double *there = costs_of(all, to);
			struct move best = {.cost = INFINITY, .node = NONE};

			for (uint32_t i = all->end[from] - all->sizes[from]; i < all->end[from]; i++) {
				uint32_t node = all->members[i];
				double cost = there[node] - here[node];

				if (cost < best.cost)
					best = (struct move){.cost = cost, .node = node};
			}
			all->moves[(size_t)from * all->groups + to] = best;
		}
	}
}

/*
 * Bellman-Ford: from all groups that can spare a member to all groups. Moves may have negative costs, but no
 * cycle has, as the assignment is optimal for its sizes. Returns the group below the minimum with the cheapest
 * chain.
 */
static uint32_t find_chain(struct assignment *all)
{
	uint32_t best = NONE;
	bool again = true;

	for (uint32_t group = 0; group < all->groups; group++) {
		all->reach[group] = all->sizes[group] > all->least ? 0 : INFINITY;
		all->before[group] = NONE;
	}
	for (uint32_t round = 0; again && round < all->groups; round++) {
		again = false;
		for (uint32_t from = 0; from < all->groups; from++) {
			for (uint32_t to = 0; to < all->groups && !isinf(all->reach[from]); to++) {
				double reach = all->reach[from] + all->moves[(size_t)from * all->groups + to].cost;

				if (to == from || !(reach < all->reach[to] - all->slack))
					continue;
				all->reach[to] = reach;
				all->before[to] = from;
				again = true;
			}
		}
	}
	for (uint32_t group = 0; group < all->groups; group++) {
		if (all->sizes[group] < all->least && (best == NONE || all->reach[group] < all->reach[best]))
			best = group;
	}
	return best;
}

/* Moves one node along each link of the chain that ends in group `to`. */
static void follow_chain(struct assignment *all, uint32_t to)
{
	memset(all->changed, 0, all->groups * sizeof(*all->changed));
	all->sizes[to]++;
	all->changed[to] = true;
	while (all->before[to] != NONE) {
		uint32_t from = all->before[to];

		all->group_of[all->moves[(size_t)from * all->groups + to].node] = to;
		all->changed[from] = true;
		to = from;
	}
	all->sizes[to]--;
}

static bool is_short(const struct assignment *all)
{
	for (uint32_t group = 0; group < all->groups; group++) {
		if (all->sizes[group] < all->least)
			return true;
	}
	return false;
}

static enum esp_status assignment_init(struct assignment *all)
{
	all->sizes = calloc(all->groups, sizeof(*all->sizes));
	all->before = calloc(all->groups, sizeof(*all->before));
	all->reach = calloc(all->groups, sizeof(*all->reach));
	all->end = calloc(all->groups, sizeof(*all->end));
	all->changed = calloc(all->groups, sizeof(*all->changed));
	all->members = calloc(all->nodes, sizeof(*all->members));
	all->cheapest = calloc(all->nodes, sizeof(*all->cheapest));
	return all->sizes && all->before && all->reach && all->end && all->changed && all->members &&
	       all->cheapest ? ESP_OK : ESP_ENOMEM;
}

static void assignment_fini(struct assignment *all)
{
	free(all->sizes);
	free(all->before);
	free(all->reach);
	free(all->end);
	free(all->changed);
	free(all->members);
	free(all->cheapest);
	free(all->moves);
}

/* Until no group is below the minimum. */
static enum esp_status fill(struct assignment *all)
{
	all->moves = calloc((size_t)all->groups * all->groups, sizeof(*all->moves));
	if (!all->moves)
		return ESP_ENOMEM;
	find_moves(all, NULL);
	while (is_short(all)) {
		follow_chain(all, find_chain(all));
		find_moves(all, all->changed);
	}
	return ESP_OK;
}

enum esp_status discover_assign_least(const double *cost, uint32_t nodes, uint32_t groups, uint32_t least,
                                      uint32_t *group_of, struct error *err)
{
	if (groups == 0 || (uint64_t)groups * least > nodes)
		return error_set(err, ESP_EINVAL, "%u nodes do not make %u groups of at least %u", nodes, groups, least);
	struct assignment all = {.cost = cost, .nodes = nodes, .groups = groups, .least = least, .group_of = group_of};
	enum esp_status status = assignment_init(&all);

	if (status == ESP_OK)
		assign_cheapest(&all);
	if (status == ESP_OK && is_short(&all))
		status = fill(&all);
	assignment_fini(&all);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "no memory to assign %u nodes to %u groups", nodes,
	                                             groups);
}
