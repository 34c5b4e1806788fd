/*
 * stand.h - where the nodes of a plan stand: workers and servers on hosts, switches on switches.
 */
#ifndef SIM_STAND_H
#define SIM_STAND_H

#include "network/topo/topology.h"
#include "plan/plan.h"

/*
 * A topology for the plan: a rack for each of its groups, a host for each of its machines (workers, servers,
 * aggregators), in the order of their numbers. links says how fast; its racks and hosts are not used. Machines that are
 * no workers have links of its server_bits, if it has any.
 */
ESP_CHECKED enum esp_status sim_stand_topology(const struct plan *plan, const struct topology_spec *links,
                                               struct topology **out, struct error *err);

/*
 * The vertex of each node on a topology that was made for the plan (workers NULL), or on any, with the hosts of the
 * workers given: other machines then take hosts that no worker has, in order, and share hosts when there are no more.
 * Switches stand at the rack of their group, and the one above the groups at the root; those of a plan without groups
 * at the switch that the first worker hangs from.
 */
ESP_CHECKED enum esp_status sim_stand_nodes(const struct plan *plan, const struct topology *topology,
                                            const uint32_t *workers, uint32_t *out_place, struct error *err);

#endif
