/*
 * affinity_parts.h - shared by affinity.c, affinity_judge.c and affinity_ways.c. Private to them.
 */
#ifndef NETWORK_DISCOVER_AFFINITY_PARTS_H
#define NETWORK_DISCOVER_AFFINITY_PARTS_H

#include "network/discover/affinity.h"

#define AFFINITY_NODES_LEAST 4u /* fewer nodes have no residuals once each has a number of its own */

/* Fills in noise and likelihood with one group, to which all other groupings are compared. */
ESP_CHECKED enum esp_status discover_affinity_judge_one(struct affinity *affinity, struct error *err);

/* The same, and discover_affinity_judge(), for measurements on a network with other traffic. */
ESP_CHECKED enum esp_status discover_affinity_ways_one(struct affinity *affinity, struct error *err);
ESP_CHECKED enum esp_status discover_affinity_ways_judge(const struct affinity *affinity,
                                                         const struct grouping *grouping, struct affinity_verdict *out,
                                                         struct error *err);

/* Nats to describe a grouping: the number of groups, up to half of the nodes, and the members; groups have no names. */
double discover_affinity_description(uint32_t count, uint32_t nodes);
/*
 * Starting values of a fit, as gap and own parts converge slowly together: least squares over all pairs. own:
 * for one group on entry, beside the gap on return. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_affinity_begin(const struct affinity *affinity, const struct grouping *grouping,
                                                    double *own, double *out_gap, struct error *err);

#endif
