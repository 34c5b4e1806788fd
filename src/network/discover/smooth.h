/*
 * smooth.h - distances as a grouping explains them: the noise of single pairs is averaged out.
 *
 * A plan costs as much as its busiest node. Of many nodes, each with a few pairs within its group, one is
 * unlucky; the smaller the groups and the more groupings there are, the more luck decides. If a grouping is
 * true, two pairs of the same two groups differ only by the own parts of the four nodes: d_ij = level of the
 * two groups * own_i * own_j. Pure; the same bits on every machine.
 */
#ifndef NETWORK_DISCOVER_SMOOTH_H
#define NETWORK_DISCOVER_SMOOTH_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/*
 * The sums over any two groups, and over the row of any node, are nearly those of the matrix: a group that
 * mixes near and far pairs keeps its cost. Unknown pairs get predicted values; NAN if nothing is known between
 * two groups. The matrix passes matrix_check(). ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_smooth_by_groups(const struct matrix *matrix, const struct grouping *grouping,
                                                      struct matrix *out, struct error *err);

#endif
