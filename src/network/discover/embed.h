/*
 * embed.h - nodes as points, such that the distances between the points are those that were measured.
 *
 * Minimises PLink's equation 1 with Adam: the sum over all pairs of (|v_i - v_j|^alpha + h_i + h_j - p_ij)^2, in which h, what
 * every path of a node costs before it leaves the node, is optional and never negative. Pairs of which nothing is known are
 * left out of the sum. The unit of the distances does not matter. Several starts are tried and the best end is kept.
 *
 * Pure; one seed gives the same bits on every machine (IEEE arithmetic without contraction; an alpha other than 1, 1.5 and 2
 * takes powf() of the C library).
 */
#ifndef NETWORK_DISCOVER_EMBED_H
#define NETWORK_DISCOVER_EMBED_H

#include "network/topo/matrix.h"

#define EMBED_DIMENSIONS_MAX 64u

/* Zeros are the defaults. */
struct embed_options {
	uint32_t dimensions; /* 0: the root of the number of nodes, from 2 to 32, as groups that are all equally far from each
	                      * other need one fewer than there are groups */
	double alpha;        /* 1 .. 2; 0: 2                                       */
	bool no_startup;     /* without h: 1_h of the equation is 0                */
	uint32_t restarts;   /* 0: 4, above 256 nodes 2                            */
	uint32_t steps;      /* of Adam at most, per restart; 0: 400               */
	uint64_t seed;
};

struct embedding {
	uint32_t nodes;
	uint32_t dimensions;
	double alpha;
	double unit;      /* of the matrix, for 1 of the space: (|v_i - v_j|^alpha + h_i + h_j) * unit is p_ij */
	double *points;   /* node by node, nodes * dimensions */
	double *startup;  /* h of each node; all 0 without    */
	double start;     /* what the kept restart began with, and what it ended with: the root of the mean square of what */
	double objective; /* is left of a pair's distance, in the matrix's own unit. objective <= start                  */
};

/* matrix passes matrix_check(). ESP_EINVAL: options out of range; ESP_ENOMEM. */
ESP_CHECKED enum esp_status embed(const struct matrix *matrix, const struct embed_options *options, struct embedding *out,
                                  struct error *err);
void embedding_fini(struct embedding *embedding);

/* |v_i - v_j|^alpha in the matrix's unit: the distance without noise and start-up costs. */
double embedding_distance(const struct embedding *embedding, uint32_t i, uint32_t j);
/* The same for all pairs; with startup: h_i + h_j as well, which is what a probe should have found. */
ESP_CHECKED enum esp_status embedding_matrix(const struct embedding *embedding, bool startup, struct matrix *out,
                                             struct error *err);

#endif
