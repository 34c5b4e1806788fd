/*
 * silhouette.h - how clearly groups stand apart, from distances alone.
 */
#ifndef NETWORK_DISCOVER_SILHOUETTE_H
#define NETWORK_DISCOVER_SILHOUETTE_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/*
 * The mean over all nodes of (b - a) / max(a, b): a is the mean distance of the node to the others of its group, b that to the
 * nearest other group. 1: groups are points far apart; 0: they are not apart, or there is but one; below: nodes are in the
 * wrong ones. A node alone in its group counts 0 (Rousseeuw, 1987). Unknown distances are left out. NAN: no memory.
 */
double silhouette(const struct matrix *distances, const struct grouping *grouping);

/*
 * The same as a mean over groups, of which each counts as much as another: one group that holds what does not belong together shows, however
 * small it is. A node alone has nothing inside of its group: what is usual inside of groups takes the place, so that who was cut off from its neighbours
 * counts 0 and who really stands alone counts much. 0: all are alone, or there is one group; NAN: no memory.
 */
double silhouette_of_groups(const struct matrix *distances, const struct grouping *grouping);

#endif
