/*
 * grouping.h - a partition of nodes into groups: every node is in exactly one.
 *
 * Groups are numbered from 0 without gaps, in the order of their lowest nodes, so that equal groupings have
 * equal numbers. Plain data that the caller owns; pure functions.
 */
#ifndef NETWORK_TOPO_GROUPING_H
#define NETWORK_TOPO_GROUPING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct grouping {
	uint32_t nodes;
	uint32_t count; /* groups */
	uint32_t *group_of;
};

/* All nodes in group 0. ESP_ENOMEM; nodes > 0. */
ESP_CHECKED enum esp_status grouping_init(struct grouping *grouping, uint32_t nodes, struct error *err);
/* From any labels: nodes with equal labels are one group. */
ESP_CHECKED enum esp_status grouping_from(struct grouping *grouping, const uint32_t *labels, uint32_t nodes,
                                          struct error *err);
void grouping_fini(struct grouping *grouping); /* accepts a zeroed struct */

/*
 * A balanced random grouping, the paper's baseline: `count` groups (1 .. nodes) of sizes that differ by at most
 * one, members chosen by the seed. ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status grouping_random(struct grouping *grouping, uint32_t nodes, uint32_t count, uint64_t seed,
                                            struct error *err);

bool grouping_equal(const struct grouping *a, const struct grouping *b);

/* The sizes of the groups; out has room for grouping->count. */
void grouping_sizes(const struct grouping *grouping, uint32_t *out);

/*
 * The variance of the groups' sizes times the square of their number, an integer; 0: all sizes are equal.
 * UINT64_MAX: no memory.
 */
uint64_t grouping_diversity(const struct grouping *grouping);

#endif
