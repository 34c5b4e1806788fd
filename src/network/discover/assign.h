/*
 * assign.h - assigns every node to a group at the least total cost, with a minimum of members: the step inside
 * constrained k-means.
 *
 * A transport problem. Every node is assigned to its cheapest group, which is optimal without a minimum; then
 * groups below the minimum get members one by one over the cheapest chain of moves from a group that can spare
 * one (successive shortest paths of the min-cost flow, on the groups only). Pure, exact.
 */
#ifndef NETWORK_DISCOVER_ASSIGN_H
#define NETWORK_DISCOVER_ASSIGN_H

#include <stdint.h>

#include "base/error.h"

/*
 * cost is by group, groups * nodes, finite. group_of[] gets each node's group, such that every group has at
 * least `least` members and the total cost is minimal; of groups with equal costs the one with the lower number
 * is chosen. ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_assign_least(const double *cost, uint32_t nodes, uint32_t groups, uint32_t least,
                                                  uint32_t *group_of, struct error *err);

#endif
