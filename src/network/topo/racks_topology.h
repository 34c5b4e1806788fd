/*
 * racks_topology.h - from what somebody wrote down to a topology: the places of racks.h become switches, and links get the rates that
 * are told.
 *
 *     row1/rack3    a switch rack3 below a switch row1; a core above the rows, if there are several. A switch that would have one
 *     row1/rack4    switch below it and nothing else is left out: whatever passes one of the two passes the other.
 *
 * Pure.
 */
#ifndef NETWORK_TOPO_RACKS_TOPOLOGY_H
#define NETWORK_TOPO_RACKS_TOPOLOGY_H

#include "network/topo/racks.h"
#include "network/topo/topology.h"

struct racks_links {
	uint64_t rate_bits;       /* of a host's link, each way                                                       */
	uint64_t uplink_bits;     /* of a rack's uplink; 0: (the hosts of the rack) * rate_bits / oversubscribe       */
	double oversubscribe;     /* 0: 1                                                                             */
	uint64_t delay_ns;        /* one way, of a host's link                                                        */
	uint64_t uplink_delay_ns; /* of a switch's                                                                    */
};

/*
 * Racks stand in the order of their first hosts, hosts of a rack in their order. A switch above racks has an uplink of all that theirs
 * have together, up to what a topology's text can say. A switch is called what the file calls it, or by its whole path where that
 * alone is not unique, or gets a number. racks as a reader made it, with hosts as they were given to that. ESP_EINVAL: a name that a topology cannot have,
 * rates that are no rates, too many levels; ESP_ELIMIT, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status racks_topology(const struct racks *racks, const char *const *hosts, const struct racks_links *links,
                                           struct topology **out, struct error *err);

#endif
