/*
 * grouping.h - nodes cut into groups: every node is in exactly one.
 *
 * Groups are numbered from 0 without gaps, in the order of their first node, so that equal groupings have equal numbers.
 * Plain data that the caller owns; pure functions.
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
/* From any labels, equal labels being one group. */
ESP_CHECKED enum esp_status grouping_from(struct grouping *grouping, const uint32_t *labels, uint32_t nodes, struct error *err);
void grouping_fini(struct grouping *grouping); /* of zeros: nothing happens */

/*
 * Balanced random, the paper's baseline: so many groups (1 .. nodes), as equal in size as can be, members by the seed.
 * ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status grouping_random(struct grouping *grouping, uint32_t nodes, uint32_t count, uint64_t seed,
                                            struct error *err);

bool grouping_equal(const struct grouping *a, const struct grouping *b);

/* Nodes of each group; out has room for grouping->count. */
void grouping_sizes(const struct grouping *grouping, uint32_t *out);

/*
 * How unlike the sizes of the groups are: their variance times the square of their number, a whole number; 0: all alike.
 * UINT64_MAX: no memory to count them.
 */
uint64_t grouping_diversity(const struct grouping *grouping);

#endif
