/*
 * topology_build.h - a topology under construction: vertex by vertex, parents first. Private to
 * src/network/topo.
 */
#ifndef NETWORK_TOPO_TOPOLOGY_BUILD_H
#define NETWORK_TOPO_TOPOLOGY_BUILD_H

#include "network/topo/topology.h"

struct topology_builder {
	struct topology *topology; /* owned until topology_build_end() */
	size_t vertex_capacity, link_capacity, host_capacity, change_capacity, background_capacity;
};

/* A vertex to add. Rates are in bytes per second. */
struct build_vertex {
	const char *name;
	size_t length;   /* of the name */
	uint32_t parent; /* TOPOLOGY_NONE: the root; the fields below are unused */
	bool is_host;
	uint32_t nics;
	double rate_out, rate_in;
	double delay;
	double local; /* 0: no local link */
};

ESP_CHECKED enum esp_status topology_build_begin(struct topology_builder *builder, struct error *err);
void topology_build_abandon(struct topology_builder *builder);

/* ESP_EINVAL: the name is taken or too long, the tree too deep; ESP_ELIMIT; ESP_ENOMEM. */
ESP_CHECKED enum esp_status topology_build_add(struct topology_builder *builder, const struct build_vertex *vertex,
                                               struct error *err);
ESP_CHECKED enum esp_status topology_build_change(struct topology_builder *builder, struct topology_change change,
                                                  struct error *err);
ESP_CHECKED enum esp_status topology_build_background(struct topology_builder *builder,
                                                      struct topology_background background, struct error *err);

/* The default name of the next host: by its number among the hosts, as in a lab. Returns text. */
const char *topology_build_host_name(const struct topology_builder *builder, char text[TOPOLOGY_NAME]);

/* Sets the classes of the links; returns the topology, which the caller owns. */
struct topology *topology_build_end(struct topology_builder *builder);

/* The default name of a host: "node07". Returns text. */
const char *topology_host_name(uint32_t number, char text[TOPOLOGY_NAME]);

#endif
