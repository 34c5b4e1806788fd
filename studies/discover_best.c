#include "studies/discover_best.h"

#include <assert.h>
#include <stdlib.h>

/* ---- all balanced groupings ---- */

struct walk {
	uint32_t nodes, groups;
	uint32_t group_of[BEST_MACHINES_MOST];
	uint32_t size[BEST_MACHINES_MOST];
	uint32_t larger; /* groups that have one member more than the others, so far */
	enum esp_status (*each)(void *user, const uint32_t *group_of);
	void *user;
};

/*
 * Puts node by node into the groups that have begun and are not full, or into the next one: each grouping
 * occurs once. Sizes are nodes / groups, and one more for as many groups as the remainder.
 */
static enum esp_status descend(struct walk *walk, uint32_t node, uint32_t begun)
{
	uint32_t least = walk->nodes / walk->groups, over = walk->nodes % walk->groups;
	enum esp_status status = ESP_OK;

	if (node == walk->nodes)
		return walk->each(walk->user, walk->group_of);
	for (uint32_t group = 0; group <= begun && group < walk->groups && status == ESP_OK; group++) {
		bool is_larger = walk->size[group] == least;

		if (walk->size[group] > least || (is_larger && walk->larger == over))
			continue;
		walk->group_of[node] = group;
		walk->size[group]++;
		walk->larger += is_larger;
		status = descend(walk, node + 1, group == begun ? begun + 1 : begun);
		walk->larger -= is_larger;
		walk->size[group]--;
	}
	return status;
}

enum esp_status best_each(uint32_t nodes, uint32_t groups,
                          enum esp_status (*each)(void *user, const uint32_t *group_of), void *user)
{
	struct walk walk = {.nodes = nodes, .groups = groups, .each = each, .user = user};

	if (nodes == 0 || nodes > BEST_MACHINES_MOST || groups == 0 || groups > nodes)
		return ESP_EINVAL;
	return descend(&walk, 0, 0);
}

/* ---- running them ---- */

struct search {
	const struct best_config *config;
	const struct topology *topology;
	double *seconds;
	uint32_t count, room;
	uint32_t groups; /* of the current groupings */
	uint32_t best_groups;
	double best;
	struct error *err;
};

static enum esp_status add_seconds(struct search *search, double seconds, uint32_t groups)
{
	if (search->count == search->room) {
		uint32_t room = search->room ? 2 * search->room : 256;
		double *larger = realloc(search->seconds, room * sizeof(*larger));

		if (!larger)
			return error_set(search->err, ESP_ENOMEM, "no memory for %u groupings", room);
		search->seconds = larger;
		search->room = room;
	}
	if (search->count == 0 || seconds < search->best) {
		search->best = seconds;
		search->best_groups = groups;
	}
	search->seconds[search->count++] = seconds;
	return ESP_OK;
}

static enum esp_status run_grouping(void *user, const uint32_t *group_of)
{
	struct search *search = user;
	double seconds = 0;
	enum esp_status status = find_seconds(search->topology, group_of, &search->config->load, &seconds, search->err);

	return status == ESP_OK ? add_seconds(search, seconds, search->groups) : status;
}

static enum esp_status run_all(struct search *search)
{
	uint32_t machines = search->config->spec.machines;
	double seconds = 0;
	enum esp_status status = find_seconds(search->topology, NULL, &search->config->load, &seconds, search->err);

	if (status == ESP_OK)
		status = add_seconds(search, seconds, 1);
	for (uint32_t groups = 2; groups < machines && status == ESP_OK; groups++) {
		search->groups = groups;
		status = best_each(machines, groups, run_grouping, search);
	}
	return status;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static enum esp_status seconds_by(const struct search *search, const struct grouping *groups, double *out,
                                  struct error *err)
{
	bool is_flat = groups->count == 1 || groups->count == groups->nodes;

	return find_seconds(search->topology, is_flat ? NULL : groups->group_of, &search->config->load, out, err);
}

static enum esp_status compare(struct search *search, const struct discovered *found, const struct grouping *racks,
                               struct best_result *out, struct error *err)
{
	enum esp_status status = seconds_by(search, &found->chosen, &out->chosen, err);
	uint32_t longer = 0;

	if (status == ESP_OK)
		status = seconds_by(search, &found->root, &out->root, err);
	if (status == ESP_OK)
		status = seconds_by(search, racks, &out->truth, err);
	if (status != ESP_OK)
		return status;
	assert(search->seconds);
	out->flat = search->seconds[0];
	out->groupings = search->count;
	out->best_groups = search->best_groups;
	out->chosen_groups = found->chosen.count;
	out->racks = racks->count;
	qsort(search->seconds, search->count, sizeof(*search->seconds), ascending);
	out->best = search->seconds[0];
	out->median = search->seconds[search->count / 2];
	out->worst = search->seconds[search->count - 1];
	for (uint32_t i = 0; i < search->count; i++)
		longer += search->seconds[i] > out->chosen * (1 + 1e-9);
	out->beaten = (double)longer / search->count;
	return ESP_OK;
}

enum esp_status best_run(const struct best_config *config, struct best_result *out, struct error *err)
{
	struct discover_case made = {0};
	struct topology *topology = NULL;
	struct discovered found = {0};
	struct grouping racks = {0};

	*out = (struct best_result){0};
	if (config->spec.machines > BEST_MACHINES_MOST)
		return error_set(err, ESP_EINVAL, "%u machines have too many groupings to try them all: %u at most",
		                 config->spec.machines, BEST_MACHINES_MOST);
	enum esp_status status = discover_open(&made, &config->spec, config->seed, config->seed, err);
	if (status == ESP_OK)
		status = region_topology(&made.region, made.crowd.host_share, made.crowd.flows, &topology, err);
	struct search search = {.config = config, .topology = topology, .err = err};
	if (status == ESP_OK)
		status = find_groups(&made, &config->find, config->seed, &found, err);
	if (status == ESP_OK)
		status = region_grouping(&made.region, REGION_RACK, &racks, err);
	if (status == ESP_OK)
		status = run_all(&search);
	if (status == ESP_OK)
		status = compare(&search, &found, &racks, out, err);
	free(search.seconds);
	grouping_fini(&racks);
	discovered_fini(&found);
	topology_close(topology);
	discover_close(&made);
	return status;
}
