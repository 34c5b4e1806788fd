/*
 * assign.h - every node to one group at the least sum of costs, with a minimum of members: the step inside constrained k-means.
 *
 * A transport problem. Every node goes to its cheapest group first, which is the optimum without a minimum; then groups
 * that have too few get members one by one over the cheapest chain of moves from a group that can spare one (successive
 * shortest paths of the min-cost flow, on the groups alone). Pure, exact.
 */
#ifndef NETWORK_DISCOVER_ASSIGN_H
#define NETWORK_DISCOVER_ASSIGN_H

#include <stdint.h>

#include "base/error.h"

/*
 * cost is group by group, groups * nodes, finite. group_of[] gets each node's group, such that every group has at least least
 * members and the sum of the costs is the smallest there is; of equal costs the group with the lower number is taken first. ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status assign_least(const double *cost, uint32_t nodes, uint32_t groups, uint32_t least,
                                         uint32_t *group_of, struct error *err);

#endif
