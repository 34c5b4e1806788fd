/* train_links.c - the bound of a run: the host or switch whose links were busy for the longest. */
#include <stdio.h>

#include "sim/train_state.h"

#define ALIKE 0.01

/* Whose host it is; hubs before workers that share one with them, as they are why it is busy. */
static void name_host(const struct train *train, uint32_t vertex, struct train_link *link)
{
	uint32_t workers = train->load->workers, hosts = workers + train->servers;
	uint32_t count = train->config.mechanism->uses_hubs ? hosts + train->extras : hosts;

	for (uint32_t i = count; i-- > 0;) {
		if (train->place[i] != vertex)
			continue;
		link->kind = i < workers ? TRAIN_WORKER : i < hosts ? TRAIN_SERVER : TRAIN_HUB;
		link->number = i < workers ? i : i < hosts ? i - workers : i - hosts;
		return;
	}
}

static struct train_link links_of(const struct train *train, uint32_t number)
{
	const struct topology *topology = train->config.topology;
	const struct topology_vertex *vertex = &topology->vertices[number];
	const struct network *network = sim_cluster_network(train->cluster);
	struct train_link link = {.kind = TRAIN_SWITCH, .in_turn = train->servers && !train->config.no_barrier};
	double rate[2] = {0};
	uint64_t bytes[2] = {0};

	for (uint32_t i = 0; i < 2u * vertex->nics; i++) {
		bytes[i % 2] += sim_network_link_bytes(network, vertex->first_link + i);
		rate[i % 2] += topology->links[vertex->first_link + i].rate;
	}
	link.out_bytes = bytes[0] / train->iterations;
	link.in_bytes = bytes[1] / train->iterations;
	link.out_s = (double)link.out_bytes / rate[0];
	link.in_s = (double)link.in_bytes / rate[1];
	snprintf(link.name, sizeof(link.name), "%s", vertex->name);
	if (vertex->is_host)
		name_host(train, number, &link);
	return link;
}

struct train_link sim_train_busiest(const struct train *train)
{
	const struct topology *topology = train->config.topology;
	struct train_link most = {0};

	for (uint32_t i = 0; i < topology->vertex_count; i++) {
		if (topology->vertices[i].parent == TOPOLOGY_NONE)
			continue;
		struct train_link link = links_of(train, i);
		double busy = train_link_busy_s(&link), before = train_link_busy_s(&most);

		if (busy > before * (1 + ALIKE)) {
			most = link;
			most.alike = 1;
		} else if (most.alike > 0 && busy >= before * (1 - ALIKE) && link.kind == most.kind) {
			most.alike++;
		}
	}
	return most;
}
