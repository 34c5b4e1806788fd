/*
 * topology.h - hosts, switches and the links between them, as plain data.
 *
 *            core                a tree: every vertex but the root has one or more links up to
 *           /    \               its parent and as many down from it, with a rate and a delay
 *       rack0    rack1           each way. Hosts are leaves; switches can hold a plan's extra
 *       /  \      /  \           nodes (aggregation, multicast).
 *   node00 node01 ... node03
 *
 * Made from a few numbers, like those of `espalier lab up`, or read from text:
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
#define TOPOLOGY_NAME 64        /* with its NUL, as in gethostname() */
#define TOPOLOGY_DEPTH_MAX 6u   /* vertices from the root down to a host */
#define TOPOLOGY_HOPS_MAX 10u   /* links of a path */
#define TOPOLOGY_VERTICES_MAX (1u << 20)
#define TOPOLOGY_NICS_MAX 16u

/* Links that are counted together. Out: away from the host, or from the switch towards the root. */
enum topology_class {
	TOPOLOGY_HOST_OUT,
	TOPOLOGY_HOST_IN,
	TOPOLOGY_RACK_OUT, /* uplinks of switches that have hosts        */
	TOPOLOGY_RACK_IN,
	TOPOLOGY_UPPER_OUT, /* uplinks of the other switches              */
	TOPOLOGY_UPPER_IN,
	TOPOLOGY_LOCAL,    /* between nodes of one host: its memory */
	TOPOLOGY_CLASSES,
};
/* "host_out": as JSON has it. */
const char *topology_class_name(enum topology_class class);

struct topology_link {
	double rate;  /* bytes per second */
	double delay; /* seconds          */
	uint32_t vertex; /* the lower end of the link */
	uint8_t class;   /* enum topology_class         */
};

struct topology_vertex {
	char name[TOPOLOGY_NAME];
	uint32_t parent; /* TOPOLOGY_NONE: the root */
	uint32_t depth;  /* of the root: 0 */
	uint32_t first_link; /* up and down of the first NIC, up and down of the second, ...; then local */
	uint16_t nics;
	bool is_host;
	bool has_local; /* it has a link between its own nodes; otherwise they exchange data in no time */
};

/* A new rate of a vertex's links from a time on: both directions, each NIC. */
struct topology_change {
	double at;
	uint32_t vertex;
	double rate; /* bytes per second */
};

/* Background traffic. */
struct topology_background {
	double from, to; /* to INFINITY: until the end */
	uint32_t source, target; /* vertices */
	double rate;    /* bytes per second, taken from every link of the path; 0: see flows */
	uint32_t flows; /* flows that take their fair share (fluid networks only) */
};

struct topology {
	struct topology_vertex *vertices;
	uint32_t vertex_count;
	struct topology_link *links;
	uint32_t link_count;
	uint32_t *hosts; /* vertices of the hosts, in order */
	uint32_t host_count;
	struct topology_change *changes; /* in the order of the text */
	uint32_t change_count;
	struct topology_background *backgrounds;
	uint32_t background_count;
	uint32_t *index; /* vertices by name: open addressing, TOPOLOGY_NONE: free */
	uint32_t index_capacity;
};

/* Racks of hosts below a core; one rack has no core. */
struct topology_spec {
	uint32_t racks;        /* at least 1                                                 */
	uint32_t hosts;        /* in all; over the racks in order, in numbers that differ by at most one */
	const uint32_t *rack_hosts; /* hosts of each rack instead; NULL: see above. Borrowed during the call */
	/* by rack: so many of its hosts, the last ones, have links of another rate; NULL: none. Borrowed during the call */
	const uint32_t *rack_servers;
	uint64_t server_bits;  /* that rate; 0: the same as the others' */
	uint32_t nics;         /* of each host; 0: 1                                         */
	uint64_t rate_bits;    /* of a NIC, each way                                         */
	double oversubscribe;  /* an uplink has (hosts of its rack) * nics * rate_bits / this; 0: 1 */
	uint64_t delay_ns;     /* one way, of a host's link                                  */
	uint64_t uplink_delay_ns;
	uint64_t local_bits;   /* 0: nodes of one host exchange data in no time */
};

ESP_CHECKED enum esp_status topology_make(const struct topology_spec *spec, struct topology **out, struct error *err);

/*
 * Any bytes; CRLF line ends and a byte order mark are accepted. ESP_EPARSE with "line 3: ..." in err; memory is
 * bounded by TOPOLOGY_VERTICES_MAX.
 */
ESP_CHECKED enum esp_status topology_parse(const char *text, size_t length, struct topology **out, struct error *err);
void topology_close(struct topology *topology); /* accepts NULL */

/*
 * Prints text from which topology_parse() makes the same topology, but for rates with more than seven digits.
 * ESP_EIO.
 */
ESP_CHECKED enum esp_status topology_print(const struct topology *topology, FILE *file, struct error *err);

/* The vertex of that name, or TOPOLOGY_NONE. */
uint32_t topology_find(const struct topology *topology, const char *name, size_t length);

/* The root; the switch above a host (for a switch: itself). */
uint32_t topology_root(const struct topology *topology);
uint32_t topology_rack(const struct topology *topology, uint32_t vertex);

/* The groups of the vertices in `place`, by rack, numbered from 0 in the order in which they first appear. */
ESP_CHECKED enum esp_status topology_groups(const struct topology *topology, const uint32_t *place, uint32_t count,
                                            uint32_t *out_group_of, struct error *err);

/*
 * The host of each of so many workers. Interleaved takes one host of each rack in turn; otherwise neighbours
 * are near each other. Workers beyond the number of hosts share hosts.
 */
ESP_CHECKED enum esp_status topology_place(const struct topology *topology, uint32_t workers, bool interleaved,
                                           uint32_t *out_place, struct error *err);

/*
 * The links from one vertex to another; nic chooses among parallel ones (any number). Returns their number: 0
 * from a switch to itself; from a host to itself 0, or 1 for its local link.
 */
uint32_t topology_path(const struct topology *topology, uint32_t from, uint32_t to, uint32_t nic,
                       uint32_t out_links[TOPOLOGY_HOPS_MAX]);

/* The sum of the delays of a path. */
double topology_delay(const struct topology *topology, const uint32_t *links, uint32_t count);

#endif
