/*
 * linkage.h - average linkage: the two clusters whose hosts are nearest to each other on average are joined, again
 * and again, until one is left. Pure.
 *
 * It takes distances as they are, far ones too, and has neither a number of groups nor a seed. Takes time and memory
 * of the square of the nodes (chains of nearest neighbours).
 */
#ifndef NETWORK_DISCOVER_LINKAGE_H
#define NETWORK_DISCOVER_LINKAGE_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/* A cluster is named by its lowest node; of the two that are joined b is the higher one, and a stays. */
struct linkage_join {
	uint32_t a, b;
	double height; /* the mean distance between the two */
};

struct linkage {
	uint32_t nodes;
	struct linkage_join *joins; /* nodes - 1, in the order of their heights */
};

/* The matrix has no unknown distances (confirm.h). ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_linkage_make(const struct matrix *matrix, struct linkage *out,
                                                  struct error *err);
void discover_linkage_fini(struct linkage *linkage); /* accepts a zeroed struct */

/* The clusters when so many are left, from 1 to nodes. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_linkage_cut(const struct linkage *linkage, uint32_t groups, struct grouping *out,
                                                 struct error *err);

/*
 * How clearly the clusters are apart, for each number of them: out_apart[groups], nodes + 1 entries. The silhouette of
 * clusters as wholes: (b - a) / max(a, b) with the mean distance inside, a, and to the nearest other cluster, b, on
 * average over the nodes; 0 for one that is alone. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_linkage_apart(const struct linkage *linkage, const struct matrix *matrix,
                                                   double *out_apart, struct error *err);

#endif
