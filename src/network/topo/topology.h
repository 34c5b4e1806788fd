/*
 * topology.h - hosts, switches and the links between them, as plain data.
 *
 *            core                a tree: every vertex but the root has one or more links up to
 *           /    \               its parent and as many down from it, with a rate and a delay
 *       rack0    rack1           each way. Hosts are leaves; switches can hold a plan's extra
 *       /  \      /  \           nodes (aggregation, multicast).
 *   node00 node01 ... node03
 *
 * Made from a few numbers, as `espalier lab up` takes them, or read from text:
 *
 *     topology 1
 *     switch core
 *     switch rack0 under core rate 100gbit delay 2us
 *     hosts 16 under rack0 rate 25gbit delay 1us nics 2
 *     host hub under rack0 rate 100gbit in 200gbit local 400gbit
 *     at 2s rack0 rate 10gbit
 *     from 1s to 3s node00 > node17 rate 2gbit
 *     from 1s node00 > node17 flows 4
 *
 * docs/sim.md has the grammar. Pure, immutable once made.
 */
#ifndef NETWORK_TOPO_TOPOLOGY_H
#define NETWORK_TOPO_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define TOPOLOGY_NONE UINT32_MAX
#define TOPOLOGY_NAME 64        /* with the NUL, as in gethostname() */
#define TOPOLOGY_DEPTH_MAX 6u   /* vertices from the root down to a host */
#define TOPOLOGY_HOPS_MAX 10u   /* links of a path */
#define TOPOLOGY_VERTICES_MAX (1u << 20)
#define TOPOLOGY_NICS_MAX 16u

/* What is counted together. Out is away from the host, or from the switch towards the root. */
enum topology_class {
	TOPOLOGY_HOST_OUT,
	TOPOLOGY_HOST_IN,
	TOPOLOGY_RACK_OUT, /* uplinks of switches that have hosts        */
	TOPOLOGY_RACK_IN,
	TOPOLOGY_UPPER_OUT, /* uplinks of the other switches              */
	TOPOLOGY_UPPER_IN,
	TOPOLOGY_LOCAL,    /* between nodes of one host: its memory      */
	TOPOLOGY_CLASSES,
};
/* "host_out": as JSON has it. */
const char *topology_class_name(enum topology_class class);

struct topology_link {
	double rate;  /* bytes per second */
	double delay; /* seconds          */
	uint32_t vertex; /* whose link up or down it is */
	uint8_t class;   /* enum topology_class         */
};

struct topology_vertex {
	char name[TOPOLOGY_NAME];
	uint32_t parent; /* TOPOLOGY_NONE: the root */
	uint32_t depth;  /* of the root: 0 */
	uint32_t first_link; /* up and down of its first NIC, up and down of the second, ...; then local */
	uint16_t nics;
	bool is_host;
	bool has_local; /* a link for what nodes of this host send each other; otherwise that takes no time */
};

/* A link's rate from then on; both directions of a vertex's links, each NIC. */
struct topology_change {
	double at;
	uint32_t vertex;
	double rate; /* bytes per second */
};

/* Traffic of others. */
struct topology_background {
	double from, to; /* to INFINITY: until the end */
	uint32_t source, target; /* vertices */
	double rate;    /* bytes per second that are taken from every link of the path; 0: see flows */
	uint32_t flows; /* flows that take their fair share (fluid networks only) */
};

struct topology {
	struct topology_vertex *vertices;
	uint32_t vertex_count;
	struct topology_link *links;
	uint32_t link_count;
	uint32_t *hosts; /* vertices of the hosts, in order */
	uint32_t host_count;
	struct topology_change *changes; /* as they stand in the text */
	uint32_t change_count;
	struct topology_background *backgrounds;
	uint32_t background_count;
	uint32_t *index; /* vertices by name: open addressing, TOPOLOGY_NONE is free */
	uint32_t index_capacity;
};

/* Racks of hosts below a core; one rack has no core. */
struct topology_spec {
	uint32_t racks;        /* at least 1                                                 */
	uint32_t hosts;        /* in all, as equal as can be over the racks, in order        */
	const uint32_t *rack_hosts; /* hosts of each rack, in place of that; NULL: see above. Borrowed while making */
	const uint32_t *rack_servers; /* so many of each rack's hosts, the last ones, have links of another rate; NULL: none. Borrowed */
	uint64_t server_bits;  /* that rate; 0: the same                                     */
	uint32_t nics;         /* of each host; 0: 1                                         */
	uint64_t rate_bits;    /* of a NIC, each way                                         */
	double oversubscribe;  /* an uplink has (the hosts of its rack) * nics * rate_bits / this; 0: 1 */
	uint64_t delay_ns;     /* one way, of a host's link                                  */
	uint64_t uplink_delay_ns;
	uint64_t local_bits;   /* 0: what stays in a host takes no time                      */
};

ESP_CHECKED enum esp_status topology_make(const struct topology_spec *spec, struct topology **out, struct error *err);

/* Any bytes; lines may end as on Windows, and the mark of UTF-8 may stand before them. ESP_EPARSE with "line 3: ..." in err; memory is bounded by TOPOLOGY_VERTICES_MAX. */
ESP_CHECKED enum esp_status topology_parse(const char *text, size_t length, struct topology **out, struct error *err);
void topology_close(struct topology *topology); /* NULL is fine */

/* Text that topology_parse() makes the same topology of, but for rates of more than seven digits. ESP_EIO. */
ESP_CHECKED enum esp_status topology_print(const struct topology *topology, FILE *file, struct error *err);

/* The vertex of that name, or TOPOLOGY_NONE. */
uint32_t topology_find(const struct topology *topology, const char *name, size_t length);

/* The root; the switch that a host hangs from (a switch: itself). */
uint32_t topology_root(const struct topology *topology);
uint32_t topology_rack(const struct topology *topology, uint32_t vertex);

/* The group of each of the vertices by their racks, numbered from 0 in the order in which they first appear. */
ESP_CHECKED enum esp_status topology_groups(const struct topology *topology, const uint32_t *place, uint32_t count,
                                            uint32_t *out_group_of, struct error *err);

/*
 * The hosts of so many workers. Interleaved takes one of each rack in turn; otherwise neighbours are near each other.
 * Workers beyond the hosts share hosts.
 */
ESP_CHECKED enum esp_status topology_place(const struct topology *topology, uint32_t workers, bool interleaved,
                                           uint32_t *out_place, struct error *err);

/*
 * The links from one vertex to another; nic chooses among several (any number). Returns how many there are: none from
 * a switch to itself, and from a host to itself none or its local link.
 */
uint32_t topology_path(const struct topology *topology, uint32_t from, uint32_t to, uint32_t nic,
                       uint32_t out_links[TOPOLOGY_HOPS_MAX]);

/* The sum of the delays of a path. */
double topology_delay(const struct topology *topology, const uint32_t *links, uint32_t count);

#endif
