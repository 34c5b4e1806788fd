/*
 * embed_fit.h - one run of Adam on equation 1, in single precision; a part of embed.c.
 *
 * Coordinates are kept dimension by dimension and every loop runs over the nodes, so that the compiler makes vectors of
 * it without changing the order of any sum: the bits do not depend on how wide the vectors are.
 */
#ifndef NETWORK_DISCOVER_EMBED_FIT_H
#define NETWORK_DISCOVER_EMBED_FIT_H

#include "network/discover/embed.h"

struct fit {
	uint32_t nodes, dimensions, steps;
	float alpha;
	bool has_startup;
	float *memory;    /* all that follows; one allocation                     */
	float *probed;    /* p, nodes * nodes in blocks of nodes, node by node in each; NAN: not known, and the diagonal */
	float *points;    /* dimensions * nodes, then startup: nodes              */
	float *startup;
	float *slope;     /* of points and startup: half of equation 1's          */
	float *drift;     /* Adam's first moment                                  */
	float *swing;     /* and its second                                       */
	float *best_points, *best_startup;
	float *rows;      /* the points again, node by node                       */
	float *loss;      /* nodes                                                */
	float *square;    /* of the distances of one node from those of a block   */
	float *push;      /* and by how much each moves along them                */
};

ESP_CHECKED enum esp_status fit_init(struct fit *fit, const struct matrix *matrix, double unit,
                                     const struct embed_options *options, struct error *err);
void fit_fini(struct fit *fit); /* of zeros: nothing happens */

/* Random points; start-up costs of half the distance to the nearest node. */
void fit_start(struct fit *fit, uint64_t seed);

/* Fills slope for where the points are; returns the sum over the known pairs, each counted from both ends. */
double fit_slope(struct fit *fit);

/* All steps; the best place that was passed is in best_points and best_startup. */
void fit_run(struct fit *fit);

#endif
