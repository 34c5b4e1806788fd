/*
 * affinity_parts.h - what affinity.c, affinity_judge.c and affinity_ways.c share.
 */
#ifndef NETWORK_DISCOVER_AFFINITY_PARTS_H
#define NETWORK_DISCOVER_AFFINITY_PARTS_H

#include "network/discover/affinity.h"

#define AFFINITY_NODES_LEAST 4u /* fewer have no pairs left once each has a number of its own */

/* Fills noise and likelihood: what all other groupings are compared with. */
ESP_CHECKED enum esp_status affinity_judge_one(struct affinity *affinity, struct error *err);

/* The same, and affinity_judge(), for what was measured on a network that others use. */
ESP_CHECKED enum esp_status affinity_ways_one(struct affinity *affinity, struct error *err);
ESP_CHECKED enum esp_status affinity_ways_judge(const struct affinity *affinity, const struct grouping *grouping, struct affinity_verdict *out,
                                                struct error *err);

/* Of all groupings, which one it is: how many groups, up to half of the nodes, and who is in which; groups have no names. In nats. */
double affinity_description(uint32_t count, uint32_t nodes);
/*
 * Where a fit begins, as the gap and the own parts are slow to find each other: least squares over all pairs. own: those of one group,
 * and then those beside the gap. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status affinity_begin(const struct affinity *affinity, const struct grouping *grouping, double *own, double *out_gap, struct error *err);

#endif
