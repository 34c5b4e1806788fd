/*
 * smooth.h - distances as a grouping explains them: what single pairs have of noise is averaged out.
 *
 * What a plan costs is that of its busiest node. Of many nodes, each with a few pairs inside of its group, one has bad luck; the smaller the groups
 * and the more groupings there are to choose from, the more it is luck that decides. If a grouping is what is there, two pairs of the same two groups differ only by
 * what belongs to the four nodes: d_ij = level of the two groups * own_i * own_j. Pure; the same bits on every machine.
 */
#ifndef NETWORK_DISCOVER_SMOOTH_H
#define NETWORK_DISCOVER_SMOOTH_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/*
 * Sums over any two groups, and over the row of any node, are those of the matrix, nearly: where a group mixes near and far, it costs what it did. Pairs
 * that are not known get what the others say; NAN where nothing is known between two groups. The matrix passes matrix_check(). ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status smooth_by_groups(const struct matrix *matrix, const struct grouping *grouping, struct matrix *out,
                                             struct error *err);

#endif
