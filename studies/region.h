/*
 * region.h - a synthetic region of a cloud, and the machines of a job in it.
 *
 *     region > datacenter > cluster > row > rack > host
 *
 * The counts are totals; children are spread over their parents as evenly as possible. Machines get free hosts,
 * one each, and are numbered in random order. Vertices without machines are left out, but count for shared
 * links: an uplink has a rate in proportion to all hosts below it. docs/discovery-sim.md has the numbers and
 * their sources. Pure; one seed gives one region.
 */
#ifndef STUDIES_REGION_H
#define STUDIES_REGION_H

#include "network/topo/racks.h"
#include "network/topo/topology.h"

enum region_level {
	REGION_WHOLE,
	REGION_DATACENTER,
	REGION_CLUSTER,
	REGION_ROW,
	REGION_RACK,
	REGION_HOST,
	REGION_LEVELS,
};
/* "rack" */
const char *region_level_name(enum region_level level);

enum region_allocation {
	REGION_SPREAD, /* any host of the region, uniformly */
	REGION_PACKED, /* rack after rack, all of its 1 to REGION_FREE_MOST free hosts, racks in random order */
};
#define REGION_FREE_MOST 12u
#define REGION_MACHINES_MOST 4096u

struct region_spec {
	uint32_t count[REGION_LEVELS]; /* totals; [REGION_WHOLE] is unused, [REGION_HOST] is per rack */
	uint32_t machines;
	enum region_allocation allocation;
	double host_rate;              /* bytes per second */
	double share[REGION_LEVELS];   /* the uplink has the sum of the rates below, divided by this; not for hosts */
	double delay[REGION_LEVELS];   /* of the uplink, one way; seconds */
};

/* The values that all settings share: hosts of a rack, rates, delays. Counts and machines are 0. */
struct region_spec region_defaults(void);

struct region_switch {
	uint32_t parent; /* a switch; 0 for the root */
	uint32_t level;  /* enum region_level                    */
	uint32_t number; /* on its level, vertices that are left out included */
	double rate;     /* of its uplink, bytes per second */
	double delay;
};

struct region {
	struct region_spec spec;
	struct region_switch *switches; /* parents first; those with machines */
	uint32_t switch_count;
	uint32_t *rack_of; /* by machine: its rack, a switch */
	struct racks truth; /* by machine: region, datacenter, cluster, row, rack */
};

/* ESP_EINVAL: no room for the machines, or a level has fewer vertices than the one above; ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status region_init(struct region *region, const struct region_spec *spec, uint64_t seed,
                                        struct error *err);
void region_fini(struct region *region); /* accepts a zeroed struct */

/* How many vertices of a level have machines. */
uint32_t region_held(const struct region *region, enum region_level level);

/* The true grouping: the machines below one switch of that level, such as rack or row, are a group. ESP_ENOMEM. */
ESP_CHECKED enum esp_status region_grouping(const struct region *region, enum region_level level, struct grouping *out,
                                            struct error *err);

/*
 * The links of switches between two machines, without the hosts' own: 2 * switch for its uplink, plus one for
 * the downlink. Returns their number.
 */
#define REGION_WAY_MOST (2 * (REGION_HOST - REGION_DATACENTER))
uint32_t region_way(const struct region *region, uint32_t from, uint32_t to, uint32_t out_links[REGION_WAY_MOST]);

/* The delays of a round trip between two machines, in seconds. */
double region_round_trip(const struct region *region, uint32_t a, uint32_t b);

/*
 * The region as a topology; host i is machine i. host_share: by machine, the share of its link (NULL: all of
 * it). flows: by link as numbered by region_way(), number of other flows (NULL: none).
 */
ESP_CHECKED enum esp_status region_topology(const struct region *region, const double *host_share,
                                            const uint32_t *flows, struct topology **out, struct error *err);

#endif
