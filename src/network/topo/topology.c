#include "network/topo/topology.h"

#include <stdlib.h>
#include <string.h>

#include "network/topo/topology_build.h"

static const char *const class_names[TOPOLOGY_CLASSES] = {
	[TOPOLOGY_HOST_OUT] = "host_out", [TOPOLOGY_HOST_IN] = "host_in",
	[TOPOLOGY_RACK_OUT] = "rack_out", [TOPOLOGY_RACK_IN] = "rack_in",
	[TOPOLOGY_UPPER_OUT] = "upper_out", [TOPOLOGY_UPPER_IN] = "upper_in",
	[TOPOLOGY_LOCAL] = "local",
};

const char *topology_class_name(enum topology_class class)
{
	return class_names[class];
}

/* ---- making ---- */

static enum esp_status spec_check(const struct topology_spec *spec, struct error *err)
{
	uint64_t listed = 0;

	for (uint32_t i = 0; spec->rack_hosts && i < spec->racks; i++)
		listed += spec->rack_hosts[i];
	if (spec->rack_hosts && listed != spec->hosts)
		return error_set(err, ESP_EINVAL, "the racks have %llu hosts, not %u", (unsigned long long)listed, spec->hosts);
	if (spec->racks == 0 || spec->hosts < spec->racks)
		return error_set(err, ESP_EINVAL, "%u hosts in %u racks: each rack needs one", spec->hosts, spec->racks);
	if (spec->hosts > TOPOLOGY_VERTICES_MAX - spec->racks - 1)
		return error_set(err, ESP_ELIMIT, "%u hosts and %u racks are too many: %u in all", spec->hosts, spec->racks,
		                 TOPOLOGY_VERTICES_MAX - 1);
	if (spec->rate_bits == 0)
		return error_set(err, ESP_EINVAL, "a link needs a rate");
	if (spec->nics > TOPOLOGY_NICS_MAX)
		return error_set(err, ESP_EINVAL, "%u NICs: a host has %u at most", spec->nics, TOPOLOGY_NICS_MAX);
	if (!(spec->oversubscribe >= 0) || spec->oversubscribe > 1e6)
		return error_set(err, ESP_EINVAL, "racks oversubscribed by %g: must be above 0, and 1e6 at most",
		                 spec->oversubscribe);
	return ESP_OK;
}

static uint32_t hosts_of(const struct topology_spec *spec, uint32_t rack)
{
	return spec->rack_hosts ? spec->rack_hosts[rack] : spec->hosts / spec->racks + (rack < spec->hosts % spec->racks);
}

static enum esp_status add_rack(struct topology_builder *builder, const struct topology_spec *spec, uint32_t rack,
                                uint32_t hosts, struct error *err)
{
	char name[TOPOLOGY_NAME];
	bool has_core = spec->racks > 1;
	uint32_t nics = spec->nics ? spec->nics : 1;
	double rate = (double)spec->rate_bits / 8;
	double uplink = rate * nics * hosts / (spec->oversubscribe > 0 ? spec->oversubscribe : 1);

	snprintf(name, sizeof(name), "rack%u", rack);
	uint32_t number = builder->topology->vertex_count;
	enum esp_status status = topology_build_add(builder,
	                                            &(struct build_vertex){.name = name,
	                                                                   .length = strlen(name),
	                                                                   .parent = has_core ? 0 : TOPOLOGY_NONE,
	                                                                   .nics = 1,
	                                                                   .rate_out = uplink,
	                                                                   .rate_in = uplink,
	                                                                   .delay = (double)spec->uplink_delay_ns * 1e-9},
	                                            err);
	for (uint32_t i = 0; status == ESP_OK && i < hosts; i++) {
		bool is_server = spec->rack_servers && spec->server_bits && i + spec->rack_servers[rack] >= hosts;
		double own = is_server ? (double)spec->server_bits / 8 : rate;

		topology_build_host_name(builder, name);
		status = topology_build_add(builder,
		                            &(struct build_vertex){.name = name,
		                                                   .length = strlen(name),
		                                                   .parent = number,
		                                                   .is_host = true,
		                                                   .nics = nics,
		                                                   .rate_out = own,
		                                                   .rate_in = own,
		                                                   .delay = (double)spec->delay_ns * 1e-9,
		                                                   .local = (double)spec->local_bits / 8},
		                            err);
	}
	return status;
}

enum esp_status topology_make(const struct topology_spec *spec, struct topology **out, struct error *err)
{
	struct topology_builder builder = {0};
	enum esp_status status = spec_check(spec, err);

	if (status == ESP_OK)
		status = topology_build_begin(&builder, err);
	if (status == ESP_OK && spec->racks > 1)
		status = topology_build_add(&builder,
		                            &(struct build_vertex){.name = "core", .length = 4, .parent = TOPOLOGY_NONE}, err);
	for (uint32_t rack = 0; status == ESP_OK && rack < spec->racks; rack++)
		status = add_rack(&builder, spec, rack, hosts_of(spec, rack), err);
	if (status != ESP_OK) {
		topology_build_abandon(&builder);
		return status;
	}
	*out = topology_build_end(&builder);
	return ESP_OK;
}

void topology_close(struct topology *topology)
{
	if (!topology)
		return;
	free(topology->vertices);
	free(topology->links);
	free(topology->hosts);
	free(topology->changes);
	free(topology->backgrounds);
	free(topology->index);
	free(topology);
}

/* ---- looking ---- */

uint32_t topology_root(const struct topology *topology)
{
	uint32_t at = 0;

	while (topology->vertices[at].parent != TOPOLOGY_NONE)
		at = topology->vertices[at].parent;
	return at;
}

uint32_t topology_rack(const struct topology *topology, uint32_t vertex)
{
	return topology->vertices[vertex].is_host ? topology->vertices[vertex].parent : vertex;
}

enum esp_status topology_groups(const struct topology *topology, const uint32_t *place, uint32_t count,
                                uint32_t *out_group_of, struct error *err)
{
	uint32_t *group_of_rack = malloc(topology->vertex_count * sizeof(*group_of_rack)), groups = 0;

	if (!group_of_rack)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", count);
	memset(group_of_rack, 0xff, topology->vertex_count * sizeof(*group_of_rack));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *group = &group_of_rack[topology_rack(topology, place[i])];

		if (*group == TOPOLOGY_NONE)
			*group = groups++;
		out_group_of[i] = *group;
	}
	free(group_of_rack);
	return ESP_OK;
}

/*
 * Lists the hosts taking one of each rack in turn: sorted by their index within the rack. `before` has room for
 * each vertex and one more.
 */
static void list_interleaved(const struct topology *topology, uint32_t *before, uint32_t *place_in_rack,
                             uint32_t *out_hosts)
{
	memset(before, 0, topology->vertex_count * sizeof(*before));
	for (uint32_t i = 0; i < topology->host_count; i++)
		place_in_rack[i] = before[topology->vertices[topology->hosts[i]].parent]++;
	memset(before, 0, (topology->vertex_count + 1) * sizeof(*before));
	for (uint32_t i = 0; i < topology->host_count; i++)
		before[place_in_rack[i] + 1]++;
	for (uint32_t i = 1; i < topology->host_count; i++)
		before[i] += before[i - 1];
	for (uint32_t i = 0; i < topology->host_count; i++)
		out_hosts[before[place_in_rack[i]]++] = topology->hosts[i];
}

enum esp_status topology_place(const struct topology *topology, uint32_t workers, bool interleaved, uint32_t *out_place,
                               struct error *err)
{
	uint32_t count = topology->host_count;
	uint32_t *hosts = calloc(count, sizeof(*hosts)), *place_in_rack = malloc(count * sizeof(*place_in_rack));
	uint32_t *before = malloc((topology->vertex_count + 1) * sizeof(*before));
	bool has_memory = hosts && place_in_rack && before;

	if (has_memory && interleaved)
		list_interleaved(topology, before, place_in_rack, hosts);
	for (uint32_t i = 0; has_memory && i < workers; i++) {
		/* More workers than hosts: neighbours share a host. */
		uint32_t near = workers > count ? (uint32_t)((uint64_t)i * count / workers) : i;

		out_place[i] = interleaved ? hosts[i % count] : topology->hosts[near];
	}
	free(hosts);
	free(place_in_rack);
	free(before);
	return has_memory ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory to place %u workers", workers);
}

/* The uplink of a vertex's NIC, or its downlink. */
static uint32_t link_of(const struct topology_vertex *vertex, uint32_t nic, bool down)
{
	return vertex->first_link + 2 * (nic % vertex->nics) + down;
}

uint32_t topology_path(const struct topology *topology, uint32_t from, uint32_t to, uint32_t nic,
                       uint32_t out_links[TOPOLOGY_HOPS_MAX])
{
	const struct topology_vertex *vertices = topology->vertices;
	uint32_t down[TOPOLOGY_DEPTH_MAX], count = 0, down_count = 0;

	if (from == to) {
		if (vertices[from].has_local)
			out_links[count++] = vertices[from].first_link + 2 * vertices[from].nics;
		return count;
	}
	while (from != to) {
		if (vertices[from].depth >= vertices[to].depth) {
			out_links[count++] = link_of(&vertices[from], nic, false);
			from = vertices[from].parent;
		} else {
			down[down_count++] = link_of(&vertices[to], nic, true);
			to = vertices[to].parent;
		}
	}
	while (down_count > 0)
		out_links[count++] = down[--down_count];
	return count;
}

double topology_delay(const struct topology *topology, const uint32_t *links, uint32_t count)
{
	double delay = 0;

	for (uint32_t i = 0; i < count; i++)
		delay += topology->links[links[i]].delay;
	return delay;
}
