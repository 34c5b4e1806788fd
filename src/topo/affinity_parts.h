/*
 * affinity_parts.h - what affinity.c and affinity_judge.c share.
 */
#ifndef TOPO_AFFINITY_PARTS_H
#define TOPO_AFFINITY_PARTS_H

#include "topo/affinity.h"

#define AFFINITY_NODES_LEAST 4u /* fewer have no pairs left once each has a number of its own */

/* Fills noise and likelihood: what all other groupings are compared with. */
ESP_CHECKED enum esp_status affinity_judge_one(struct affinity *affinity, struct error *err);

#endif
