/*
 * embed.h - an embedding: nodes as points whose distances approximate the measured ones.
 *
 * Minimises PLink's equation 1 with Adam: the sum over all pairs of (|v_i - v_j|^alpha + h_i + h_j - p_ij)^2,
 * where h, the start-up cost of a node's paths, is optional and never negative. Unknown pairs are left out of
 * the sum. The unit of the distances does not matter. Several starts are tried and the best result is kept.
 *
 * Pure; one seed gives the same bits on every machine (IEEE arithmetic without contraction; an alpha other than
 * 1, 1.5 and 2 uses powf() of the C library).
 */
#ifndef NETWORK_DISCOVER_EMBED_H
#define NETWORK_DISCOVER_EMBED_H

#include "network/topo/matrix.h"

#define EMBED_DIMENSIONS_MAX 64u

/* Zeros are the defaults. */
struct embed_options {
	/* 0: the square root of the number of nodes, from 2 to 32: k groups at equal distances need k - 1 dimensions. */
	uint32_t dimensions;
	double alpha;        /* 1 .. 2; 0: 2                                       */
	bool no_startup;     /* h_i = 0 */
	uint32_t restarts;   /* 0: 4, above 256 nodes 2                            */
	uint32_t steps;      /* of Adam, per restart; 0: 400 */
	uint64_t seed;
};

struct embedding {
	uint32_t nodes;
	uint32_t dimensions;
	double alpha;
	double unit;      /* of the matrix, for 1 of the space: (|v_i - v_j|^alpha + h_i + h_j) * unit is p_ij */
	double *points;   /* node by node, nodes * dimensions */
	double *startup;  /* h of each node; all 0 without start-up costs */
	double start;     /* root mean square of the residuals at the start of the kept restart, */
	double objective; /* and at its end, in the matrix's unit; objective <= start */
};

/* matrix passes matrix_check(). ESP_EINVAL: options out of range; ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_embed(const struct matrix *matrix, const struct embed_options *options,
                                           struct embedding *out, struct error *err);
void discover_embedding_fini(struct embedding *embedding);

/*
 * v_i - v_j|^alpha in the matrix's unit: the distance without noise and start-up costs.
 */
double discover_embedding_distance(const struct embedding *embedding, uint32_t i, uint32_t j);
/* The same for all pairs; with startup: plus h_i + h_j, which predicts a probe. */
ESP_CHECKED enum esp_status discover_embedding_matrix(const struct embedding *embedding, bool startup,
                                                      struct matrix *out, struct error *err);

#endif
