#include "tune/choose.h"

#include <stdlib.h>
#include <string.h>

/* ---- the order of the nodes, and their groups ---- */

/* A node and what is above it, from the root down; then TOPOLOGY_NONE. */
struct standing {
	uint32_t chain[TOPOLOGY_DEPTH_MAX + 1];
	uint32_t node;
};

static void stand(const struct topology *topology, uint32_t vertex, uint32_t node, struct standing *out)
{
	memset(out->chain, 0xff, sizeof(out->chain));
	out->node = node;
	for (uint32_t at = vertex; at != TOPOLOGY_NONE; at = topology->vertices[at].parent)
		out->chain[topology->vertices[at].depth] = at;
}

static int compare_standings(const void *left, const void *right)
{
	const struct standing *a = left, *b = right;

	for (uint32_t i = 0; i <= TOPOLOGY_DEPTH_MAX; i++) {
		if (a->chain[i] != b->chain[i])
			return a->chain[i] < b->chain[i] ? -1 : 1;
	}
	return a->node < b->node ? -1 : a->node > b->node;
}

/* Below which vertex of that depth it stands; one that is not so deep, below its own. */
static uint32_t above(const struct topology *topology, uint32_t vertex, uint32_t depth)
{
	while (topology->vertices[vertex].depth > depth)
		vertex = topology->vertices[vertex].parent;
	return vertex;
}

/* Groups the nodes by what they stand below; returns the number of groups, numbered as they first appear. */
static uint32_t group_at(const struct tune_network *network, uint32_t depth, uint32_t *number_of,
                         uint32_t *out_group_of)
{
	const struct topology *topology = network->topology;
	uint32_t count = 0;

	memset(number_of, 0xff, topology->vertex_count * sizeof(*number_of));
	for (uint32_t i = 0; i < network->nodes; i++) {
		uint32_t *number = &number_of[above(topology, network->place[i], depth)];

		if (*number == TOPOLOGY_NONE)
			*number = count++;
		out_group_of[i] = *number;
	}
	return count;
}

/* The group that each of the finest groups is in, at every other level. */
static bool menu_zones(struct tune_menu *menu)
{
	for (uint32_t level = 1; level < menu->levels; level++) {
		menu->zone_of[level] = calloc(menu->group_count[0], sizeof(*menu->zone_of[level]));
		if (!menu->zone_of[level])
			return false;
		for (uint32_t i = 0; i < menu->nodes; i++)
			menu->zone_of[level][menu->group_of[0][i]] = menu->group_of[level][i];
	}
	return true;
}

static enum esp_status menu_levels(struct tune_menu *menu, const struct tune_network *network)
{
	uint32_t *number_of = calloc(network->topology->vertex_count, sizeof(*number_of));
	uint32_t *group_of = calloc(menu->nodes, sizeof(*group_of)), before = menu->nodes;

	/* The finest first; levels that put all members apart, or all together, are no groups. */
	for (uint32_t depth = TOPOLOGY_DEPTH_MAX; number_of && group_of && depth-- > 1;) {
		uint32_t count = group_at(network, depth, number_of, group_of);

		if (count < 2 || count == before || menu->levels == TOPOLOGY_DEPTH_MAX)
			continue;
		menu->group_count[menu->levels] = before = count;
		menu->group_of[menu->levels++] = group_of;
		group_of = calloc(menu->nodes, sizeof(*group_of));
	}
	bool has_memory = number_of && group_of && menu_zones(menu);
	free(number_of);
	free(group_of);
	return has_memory ? ESP_OK : ESP_ENOMEM;
}

static enum esp_status menu_order(struct tune_menu *menu, const struct tune_network *network)
{
	struct standing *standings = calloc(menu->nodes, sizeof(*standings));

	menu->order = calloc(menu->nodes, sizeof(*menu->order));
	if (!standings || !menu->order) {
		free(standings);
		return ESP_ENOMEM;
	}
	for (uint32_t i = 0; i < menu->nodes; i++)
		stand(network->topology, network->place[i], i, &standings[i]);
	qsort(standings, menu->nodes, sizeof(*standings), compare_standings);
	for (uint32_t i = 0; i < menu->nodes; i++)
		menu->order[i] = standings[i].node;
	free(standings);
	return ESP_OK;
}

/* ---- the menu ---- */

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

/* Planners that are worth a thought; those with groups are added for every level. */
static bool suits(const char *name, enum plan_collective collective)
{
	static const char *const sums[] = {"central", "tree", "halving-doubling", "flat", "ring", NULL};
	static const char *const rooted[] = {"tree", "double-tree", NULL};
	static const char *const blocks[] = {"flat", "ring", NULL};

	switch (collective) {
	case PLAN_ALLREDUCE:
	case PLAN_BARRIER:
		return is_one_of(name, sums);
	case PLAN_BROADCAST:
	case PLAN_REDUCE:
		return is_one_of(name, rooted);
	case PLAN_ALLGATHER:
	case PLAN_REDUCE_SCATTER:
		return is_one_of(name, blocks);
	default:
		return false;
	}
}

/* Do neighbours in order matter to it? */
static bool takes_order(const char *name)
{
	static const char *const names[] = {"tree", "double-tree", "halving-doubling", "ring", NULL};

	return is_one_of(name, names);
}

static enum esp_status menu_add(struct tune_menu *menu, const struct tune_network *network,
                                enum plan_collective collective, struct tune_way way, struct error *err)
{
	struct plan_spec how = {
		.chunks = {.collective = collective}, .order = way.order, .group_of = way.group_of, .zone_of = way.zone_of,
	};

	if (menu->count == TUNE_WAYS_MOST)
		return ESP_OK;
	enum esp_status status = tune_load_planner(way.planner, &how, network, &way.load, err);
	if (status == ESP_OK)
		menu->ways[menu->count++] = way;
	return status;
}

/* Two levels by every level of the tree; three, the finest groups in those of every other. */
static enum esp_status menu_add_levels(struct tune_menu *menu, const struct tune_network *network,
                                       enum plan_collective collective, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t level = 0; status == ESP_OK && level < menu->levels; level++) {
		struct tune_way way = {
			.planner = &planner_two_level, .group_of = menu->group_of[level], .groups = menu->group_count[level],
		};

		status = menu_add(menu, network, collective, way, err);
	}
	for (uint32_t level = 1; status == ESP_OK && level < menu->levels; level++) {
		struct tune_way way = {
			.planner = &planner_three_level, .group_of = menu->group_of[0], .zone_of = menu->zone_of[level],
			.groups = menu->group_count[0],
		};

		status = menu_add(menu, network, collective, way, err);
	}
	return status;
}

static enum esp_status menu_fill(struct tune_menu *menu, const struct tune_network *network,
                                 enum plan_collective collective, struct error *err)
{
	bool moves_sums = suits("flat", collective) || suits("tree", collective);
	enum esp_status status = ESP_OK;

	for (unsigned i = 0; status == ESP_OK && plan_planner(i); i++) {
		const char *name = plan_planner_name(plan_planner(i));

		if (suits(name, collective))
			status = menu_add(
				menu, network, collective,
				(struct tune_way){.planner = plan_planner(i), .order = takes_order(name) ? menu->order : NULL}, err);
	}
	return status == ESP_OK && moves_sums ? menu_add_levels(menu, network, collective, err) : status;
}

enum esp_status tune_menu_open(const struct tune_network *network, enum plan_collective collective,
                               struct tune_menu **out, struct error *err)
{
	struct tune_menu *menu = calloc(1, sizeof(*menu));

	if (!menu)
		return error_set(err, ESP_ENOMEM, "no memory for a menu of plans");
	menu->nodes = network->nodes;
	enum esp_status status = menu_order(menu, network);
	if (status == ESP_OK)
		status = menu_levels(menu, network);
	if (status != ESP_OK)
		error_set(err, status, "no memory for the order of %u nodes", network->nodes);
	else
		status = menu_fill(menu, network, collective, err);
	if (status != ESP_OK) {
		tune_menu_close(menu);
		return status;
	}
	*out = menu;
	return ESP_OK;
}

void tune_menu_close(struct tune_menu *menu)
{
	if (!menu)
		return;
	for (uint32_t i = 0; i < menu->levels; i++) {
		free(menu->group_of[i]);
		free(menu->zone_of[i]);
	}
	free(menu->order);
	free(menu);
}

static bool is_wished(const struct tune_menu *menu, const struct tune_way *way, struct tune_wish wish)
{
	if (wish.planner && way->planner != wish.planner)
		return false;
	return !wish.group_of ||
	       (way->group_of && memcmp(way->group_of, wish.group_of, menu->nodes * sizeof(*wish.group_of)) == 0);
}

uint32_t tune_compare(const struct tune_menu *menu, struct tune_wish wish, uint64_t bytes, tune_chunk_fn *chunk,
                      void *context, struct tune_offer *offers, uint32_t count, uint32_t most)
{
	for (uint32_t i = 0; i < menu->count; i++) {
		const struct tune_way *way = &menu->ways[i];
		uint32_t place = count < most ? count : most;

		if (!is_wished(menu, way, wish))
			continue;
		double seconds = tune_seconds(&way->load, bytes, chunk(context, way));
		for (; place > 0 && seconds < offers[place - 1].seconds; place--)
			if (place < most)
				offers[place] = offers[place - 1];
		if (place < most)
			offers[place] = (struct tune_offer){way, seconds};
		count += count < most;
	}
	return count;
}

const struct tune_way *tune_choose(const struct tune_menu *menu, struct tune_wish wish, uint64_t bytes,
                                   tune_chunk_fn *chunk, void *context, double *out_seconds)
{
	const struct tune_way *best = NULL;
	double best_seconds = 0;

	for (uint32_t i = 0; i < menu->count; i++) {
		const struct tune_way *way = &menu->ways[i];

		if (!is_wished(menu, way, wish))
			continue;
		double seconds = tune_seconds(&way->load, bytes, chunk(context, way));
		if (!best || seconds < best_seconds) {
			best = way;
			best_seconds = seconds;
		}
	}
	if (out_seconds)
		*out_seconds = best_seconds;
	return best;
}
