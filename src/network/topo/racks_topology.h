/*
 * racks_topology.h - makes a topology from the places of racks.h: places become switches, with the given rates
 * of links.
 *
 *     row1/rack3    a switch rack3 below a switch row1; a core above the rows, if there are several. A switch with one
 *     row1/rack4    switch below it and nothing else is left out: the same traffic passes both.
 *
 * Pure.
 */
#ifndef NETWORK_TOPO_RACKS_TOPOLOGY_H
#define NETWORK_TOPO_RACKS_TOPOLOGY_H

#include "network/topo/racks.h"
#include "network/topo/topology.h"

struct racks_links {
	uint64_t rate_bits;       /* of a host's link, each way */
	uint64_t uplink_bits;     /* of a rack's uplink; 0: (hosts of the rack) * rate_bits / oversubscribe */
	double oversubscribe;     /* 0: 1                                                                             */
	uint64_t delay_ns;        /* one way, of a host's link */
	uint64_t uplink_delay_ns; /* one way, of a switch's uplink */
};

/*
 * Racks are in the order of their first hosts, the hosts of a rack in their order. A switch above racks has an
 * uplink with the sum of theirs, up to the largest rate of a topology's text. A switch has its name in the
 * file, or its whole path if that name is not unique, or its name with a number. `hosts` as they were given to
 * the reader of `racks`. ESP_EINVAL: a name that is not possible in a topology, an invalid rate, too many
 * levels; ESP_ELIMIT, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status racks_topology(const struct racks *racks, const char *const *hosts,
                                           const struct racks_links *links, struct topology **out, struct error *err);

#endif
