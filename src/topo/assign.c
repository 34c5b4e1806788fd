#include "topo/assign.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define SLACK 1e-12 /* of the largest cost: rounding makes no chain of moves cheaper by more */

/* The cheapest move from one group to another. */
struct move {
	double cost;   /* what it adds to the sum; INFINITY: the group is empty */
	uint32_t node;
};

struct assignment {
	const double *cost;
	uint32_t nodes, groups, least;
	uint32_t *group_of;
	double slack;
	uint32_t *sizes;
	struct move *moves; /* groups * groups */
	double *reach;      /* what the cheapest chain to each group adds */
	uint32_t *before;   /* the group before it in that chain; NONE: it begins there */
};

static double cost_of(const struct assignment *all, uint32_t node, uint32_t group)
{
	return all->cost[(size_t)node * all->groups + group];
}

static void go_to_cheapest(struct assignment *all)
{
	for (uint32_t node = 0; node < all->nodes; node++) {
		uint32_t best = 0;

		for (uint32_t group = 1; group < all->groups; group++) {
			if (cost_of(all, node, group) < cost_of(all, node, best))
				best = group;
		}
		for (uint32_t group = 0; group < all->groups; group++)
			all->slack = fmax(all->slack, fabs(cost_of(all, node, group)) * SLACK);
		all->group_of[node] = best;
		all->sizes[best]++;
	}
}

/* The cheapest moves out of the groups that changed, NULL: all. */
static void find_moves(struct assignment *all, const bool *changed)
{
	for (uint32_t from = 0; from < all->groups; from++) {
		for (uint32_t to = 0; to < all->groups && (!changed || changed[from]); to++)
			all->moves[(size_t)from * all->groups + to] = (struct move){.cost = INFINITY, .node = NONE};
	}
	for (uint32_t node = 0; node < all->nodes; node++) {
		uint32_t from = all->group_of[node];
		struct move *moves = all->moves + (size_t)from * all->groups;

		for (uint32_t to = 0; to < all->groups && (!changed || changed[from]); to++) {
			double cost = cost_of(all, node, to) - cost_of(all, node, from);

			if (cost < moves[to].cost)
				moves[to] = (struct move){.cost = cost, .node = node};
		}
	}
}

/*
 * Bellman and Ford's: from all groups that can spare a member to everywhere. Moves may be worth something (below 0), but
 * no ring of them is, as the assignment is the cheapest for its sizes. Returns the group in need with the cheapest chain.
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

/* Moves one node along each link of the chain that ends in group to. */
static void follow_chain(struct assignment *all, uint32_t to, bool *changed)
{
	memset(changed, 0, all->groups * sizeof(*changed));
	all->sizes[to]++;
	changed[to] = true;
	while (all->before[to] != NONE) {
		uint32_t from = all->before[to];

		all->group_of[all->moves[(size_t)from * all->groups + to].node] = to;
		changed[from] = true;
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

enum esp_status assign_least(const double *cost, uint32_t nodes, uint32_t groups, uint32_t least, uint32_t *group_of,
                             struct error *err)
{
	if (groups == 0 || (uint64_t)groups * least > nodes)
		return error_set(err, ESP_EINVAL, "%u nodes do not make %u groups of at least %u", nodes, groups, least);
	struct assignment all = {.cost = cost, .nodes = nodes, .groups = groups, .least = least, .group_of = group_of};
	bool *changed = calloc(groups, sizeof(*changed));
	all.sizes = calloc(groups, sizeof(*all.sizes));
	all.before = calloc(groups, sizeof(*all.before));
	all.reach = calloc(groups, sizeof(*all.reach));
	enum esp_status status = changed && all.sizes && all.before && all.reach ? ESP_OK : ESP_ENOMEM;

	if (status == ESP_OK)
		go_to_cheapest(&all);
	if (status == ESP_OK && is_short(&all)) {
		all.moves = calloc((size_t)groups * groups, sizeof(*all.moves));
		status = all.moves ? ESP_OK : ESP_ENOMEM;
		for (const bool *which = NULL; status == ESP_OK && is_short(&all); which = changed) {
			find_moves(&all, which);
			follow_chain(&all, find_chain(&all), changed);
		}
	}
	free(changed);
	free(all.sizes);
	free(all.moves);
	free(all.before);
	free(all.reach);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "no memory to assign %u nodes to %u groups", nodes, groups);
}
