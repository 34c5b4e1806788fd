#include "sim/stand.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t machines(const struct plan *plan)
{
	return plan->nodes - plan->switches;
}

static uint32_t group_of(const struct plan *plan, uint32_t node)
{
	return plan->group_of ? plan->group_of[node] : 0;
}

static enum esp_status out_of_memory(const struct plan *plan, struct error *err)
{
	return error_set(err, ESP_ENOMEM, "no memory to place %u nodes", plan->nodes);
}

enum esp_status sim_stand_topology(const struct plan *plan, const struct topology_spec *links, struct topology **out,
                                   struct error *err)
{
	struct topology_spec spec = *links;
	uint32_t racks = plan->group_of ? plan->group_count : 1;
	uint32_t *hosts = calloc(2 * (size_t)racks, sizeof(*hosts));

	if (!hosts)
		return out_of_memory(plan, err);
	uint32_t *servers = hosts + racks;
	for (uint32_t i = 0; i < machines(plan); i++) {
		hosts[group_of(plan, i)]++;
		servers[group_of(plan, i)] += i >= plan->workers;
	}
	spec.racks = racks;
	spec.hosts = machines(plan);
	spec.rack_hosts = hosts;
	spec.rack_servers = servers;
	enum esp_status status = topology_make(&spec, out, err);
	free(hosts);
	return status;
}

/* Each machine at the next host of its rack; racks stand in the order of the groups. */
static void place_by_group(const struct plan *plan, const struct topology *topology, uint32_t *next,
                           uint32_t *out_place)
{
	uint32_t host = 0;

	for (uint32_t group = 0; group < (plan->group_of ? plan->group_count : 1); group++) {
		next[group] = host;
		uint32_t rack = topology_rack(topology, topology->hosts[host]);
		while (host < topology->host_count && topology_rack(topology, topology->hosts[host]) == rack)
			host++;
		if (host == topology->host_count)
			break;
	}
	for (uint32_t i = 0; i < machines(plan); i++)
		out_place[i] = topology->hosts[next[group_of(plan, i)]++];
}

/* Machines that are no workers: at hosts that are free, as long as there are any. */
static void place_beside(const struct plan *plan, const struct topology *topology, uint32_t *is_taken,
                         uint32_t *out_place)
{
	uint32_t host = 0, shared = 0;

	assert(topology->host_count > 0);
	for (uint32_t i = 0; i < plan->workers; i++)
		is_taken[out_place[i]] = 1;
	for (uint32_t i = plan->workers; i < machines(plan); i++) {
		while (host < topology->host_count && is_taken[topology->hosts[host]])
			host++;
		out_place[i] = host < topology->host_count ? topology->hosts[host++]
		                                           : topology->hosts[shared++ % topology->host_count];
	}
}

static void place_switches(const struct plan *plan, const struct topology *topology, uint32_t *rack,
                           uint32_t *out_place)
{
	bool has_top = plan->group_of && plan->switches == plan->group_count + 1;

	for (uint32_t i = machines(plan); i-- > 0;) /* the first of each group says where it is */
		rack[group_of(plan, i)] = topology_rack(topology, out_place[i]);
	for (uint32_t i = machines(plan); i < plan->nodes; i++)
		out_place[i] = has_top && i + 1 == plan->nodes ? topology_root(topology) : rack[group_of(plan, i)];
}

enum esp_status sim_stand_nodes(const struct plan *plan, const struct topology *topology, const uint32_t *workers,
                                uint32_t *out_place, struct error *err)
{
	uint32_t room = plan->nodes > topology->vertex_count ? plan->nodes : topology->vertex_count;
	uint32_t *scratch = calloc(room, sizeof(*scratch));

	if (!scratch)
		return out_of_memory(plan, err);
	if (workers) {
		memcpy(out_place, workers, plan->workers * sizeof(*out_place));
		place_beside(plan, topology, scratch, out_place);
	} else {
		place_by_group(plan, topology, scratch, out_place);
	}
	place_switches(plan, topology, scratch, out_place);
	free(scratch);
	return ESP_OK;
}
