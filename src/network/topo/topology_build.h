/*
 * topology_build.h - a topology under construction: vertex by vertex, parents first. Private to src/network/topo.
 */
#ifndef NETWORK_TOPO_TOPOLOGY_BUILD_H
#define NETWORK_TOPO_TOPOLOGY_BUILD_H

#include "network/topo/topology.h"

struct topology_builder {
	struct topology *topology; /* owned until build_end() */
	uint32_t vertex_capacity, link_capacity, host_capacity, change_capacity, background_capacity;
};

/* A vertex to be added. Rates are in bytes per second. */
struct build_vertex {
	const char *name;
	size_t length;   /* of the name */
	uint32_t parent; /* TOPOLOGY_NONE: the root; the rest is then unused */
	bool is_host;
	uint32_t nics;
	double rate_out, rate_in;
	double delay;
	double local; /* 0: no local link */
};

ESP_CHECKED enum esp_status build_begin(struct topology_builder *builder, struct error *err);
void build_abandon(struct topology_builder *builder);

/* ESP_EINVAL: the name is taken or too long, the tree too deep; ESP_ELIMIT; ESP_ENOMEM. */
ESP_CHECKED enum esp_status build_add(struct topology_builder *builder, const struct build_vertex *vertex,
                                      struct error *err);
ESP_CHECKED enum esp_status build_change(struct topology_builder *builder, struct topology_change change,
                                         struct error *err);
ESP_CHECKED enum esp_status build_background(struct topology_builder *builder, struct topology_background background,
                                             struct error *err);

/* The name of the next host that has none of its own: by its number among the hosts, as in a lab. Returns text. */
const char *build_host_name(const struct topology_builder *builder, char text[TOPOLOGY_NAME]);

/* Sets the classes of the links; the topology is the caller's. */
struct topology *build_end(struct topology_builder *builder);

/* "node07": what a host of that number is called. Returns text. */
const char *topology_host_name(uint32_t number, char text[TOPOLOGY_NAME]);

#endif
