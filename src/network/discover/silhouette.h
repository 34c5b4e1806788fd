/*
 * silhouette.h - how clearly groups are separated, from distances only. Pure.
 */
#ifndef NETWORK_DISCOVER_SILHOUETTE_H
#define NETWORK_DISCOVER_SILHOUETTE_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/*
 * The mean over all nodes of (b - a) / max(a, b): a is the node's mean distance to the others of its group, b
 * that to the nearest other group. 1: groups are points far apart; 0: they are not separated, or there is one;
 * negative: nodes are in the wrong groups. A node alone in its group counts 0 (Rousseeuw, 1987). Unknown
 * distances are left out. NAN: no memory.
 */
double discover_silhouette(const struct matrix *distances, const struct grouping *grouping);

/*
 * The same as a mean over groups with equal weights: one group whose nodes do not belong together shows,
 * however small it is. A single node has no distance within its group: the usual one of other groups replaces
 * it, so that a node that was split from its neighbours counts 0 and one that really is alone counts much. 0:
 * all are alone, or there is one group; NAN: no memory.
 */
double discover_silhouette_of_groups(const struct matrix *distances, const struct grouping *grouping);

#endif
