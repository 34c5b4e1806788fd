/*
 * swaps.h - a local search: hosts change places, or move, as long as hosts of one group get nearer to each other. Pure.
 *
 * The number of groups stays. The search lowers the mean distance of two hosts of one group, over all such pairs.
 */
#ifndef NETWORK_DISCOVER_SWAPS_H
#define NETWORK_DISCOVER_SWAPS_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

struct swaps_bounds {
	uint32_t least, most; /* hosts of a group */
};

/* Bounds for so many groups whose sizes differ from the mean by this factor at most; 0: any sizes. */
struct swaps_bounds discover_swaps_bounds(uint32_t nodes, uint32_t groups, double elasticity);

/* The mean distance of two hosts of one group; 0: every host is alone. The matrix has no unknown distances. */
double discover_swaps_inside(const struct matrix *matrix, const struct grouping *grouping);

/* Brings the sizes into the bounds, with the least harm host by host: from groups that are too large, then to those
 * that are too small. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_swaps_fit(const struct matrix *matrix, struct swaps_bounds bounds,
                                               struct grouping *grouping, struct error *err);

/* Swaps and moves as long as that helps; sizes that are within the bounds stay so. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_swaps_polish(const struct matrix *matrix, struct swaps_bounds bounds,
                                                  struct grouping *grouping, struct error *err);

#endif
