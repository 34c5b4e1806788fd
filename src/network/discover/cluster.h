/*
 * cluster.h - constrained k-means: partitions points into k groups with a minimum size.
 *
 * Seeded by k-means++. Each round assigns all points at the least sum of squared distances that the minimum
 * size permits (a min-cost flow, solved exactly: assign.h), then moves the centres to the means. Pure;
 * deterministic from the seed.
 */
#ifndef NETWORK_DISCOVER_CLUSTER_H
#define NETWORK_DISCOVER_CLUSTER_H

#include "network/topo/grouping.h"

struct cluster_options {
	uint32_t groups;   /* 1 .. nodes                                 */
	uint32_t least;    /* least members of a group; groups * least <= nodes */
	uint32_t rounds;   /* at most; 0: 50                             */
	uint64_t seed;
};

/* floor(nodes / groups / elasticity), at least 1: elasticity from 1 (balanced) to 2 (half of balanced). */
uint32_t discover_cluster_least(uint32_t nodes, uint32_t groups, double elasticity);

/*
 * points: node by node, nodes * dimensions, finite. *out_inertia: the sum of the squared distances to the
 * centres (may be NULL). ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_cluster_points(const double *points, uint32_t nodes, uint32_t dimensions,
                                                    const struct cluster_options *options, struct grouping *out,
                                                    double *out_inertia, struct error *err);

/* The same sum for any grouping; NAN: no memory. */
double discover_cluster_inertia(const double *points, uint32_t dimensions, const struct grouping *grouping);

#endif
