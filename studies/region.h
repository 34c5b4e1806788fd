/*
 * region.h - a made-up region of a cloud, and the machines of a job in it.
 *
 *     region > datacenter > cluster > row > rack > host
 *
 * How many there are of each is given in all; they are spread over those above as equally as can be. Machines take
 * hosts as the cloud has them free, one each, and are numbered in a random order. What holds no machine is left out, but counts
 * where links are shared: an uplink has the rate that all hosts below it call for. docs/discovery-sim.md has the numbers and
 * where they come from. Pure; one seed gives one region.
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
	REGION_SPREAD, /* any host of the region, with the same chance */
	REGION_PACKED, /* rack after rack, all of its 1 to REGION_FREE_MOST free hosts, racks in a random order */
};
#define REGION_FREE_MOST 12u
#define REGION_MACHINES_MOST 4096u

struct region_spec {
	uint32_t count[REGION_LEVELS]; /* in all; [REGION_WHOLE] is not used, [REGION_HOST] is for each rack */
	uint32_t machines;
	enum region_allocation allocation;
	double host_rate;              /* bytes per second */
	double share[REGION_LEVELS];   /* the link up has the rates of those below divided by this; not of hosts */
	double delay[REGION_LEVELS];   /* one way, of the link up; seconds */
};

/* What is the same in all settings: hosts of a rack, rates, delays. The counts and the machines are left at 0. */
struct region_spec region_defaults(void);

struct region_switch {
	uint32_t parent; /* a switch; of the first, the whole: 0 */
	uint32_t level;  /* enum region_level                    */
	uint32_t number; /* among all of its level, those left out too */
	double rate;     /* of its link up, bytes per second     */
	double delay;
};

struct region {
	struct region_spec spec;
	struct region_switch *switches; /* parents first; those that hold machines */
	uint32_t switch_count;
	uint32_t *rack_of; /* by machine: its rack, a switch */
	struct racks truth; /* by machine: region, datacenter, cluster, row, rack */
};

/* ESP_EINVAL: it has no room for the machines, or a level has fewer than the one above; ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status region_init(struct region *region, const struct region_spec *spec, uint64_t seed, struct error *err);
void region_fini(struct region *region); /* of zeros: nothing happens */

/* How many different ones of a level hold machines. */
uint32_t region_held(const struct region *region, enum region_level level);

/* The truth: the machines below one switch of that level, rack or row say, are a group. ESP_ENOMEM. */
ESP_CHECKED enum esp_status region_grouping(const struct region *region, enum region_level level, struct grouping *out,
                                            struct error *err);

/*
 * The links of switches on the way from one machine to another, the hosts' own left out: 2 * switch for its link up, one more
 * for the one down. Returns how many there are.
 */
#define REGION_WAY_MOST (2 * (REGION_HOST - REGION_DATACENTER))
uint32_t region_way(const struct region *region, uint32_t from, uint32_t to, uint32_t out_links[REGION_WAY_MOST]);

/* The delays of a round trip between two machines, in seconds. */
double region_round_trip(const struct region *region, uint32_t a, uint32_t b);

/*
 * The region as a topology; host i is machine i. host_share: by machine, how much of its link it has (NULL: all of it).
 * flows: by link as region_way() numbers them, so many flows of others (NULL: none).
 */
ESP_CHECKED enum esp_status region_topology(const struct region *region, const double *host_share, const uint32_t *flows,
                                            struct topology **out, struct error *err);

#endif
