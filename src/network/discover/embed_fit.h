/*
 * embed_fit.h - one run of Adam on equation 1, in single precision; a part of embed.c.
 *
 * Coordinates are stored dimension by dimension and every loop runs over the nodes, so that the compiler
 * vectorises it without changing the order of any sum: the bits do not depend on the width of the vectors.
 */
#ifndef NETWORK_DISCOVER_EMBED_FIT_H
#define NETWORK_DISCOVER_EMBED_FIT_H

#include "network/discover/embed.h"

struct fit {
	uint32_t nodes, dimensions, steps;
	float alpha;
	bool has_startup;
	float *memory;    /* all arrays below; one allocation */
	float *probed;    /* p, nodes * nodes in blocks of nodes; NAN: unknown, and the diagonal */
	float *points;    /* dimensions * nodes, then startup: nodes              */
	float *startup;
	float *slope;     /* gradient of points and startup: half of equation 1's */
	float *drift;     /* Adam's first moment                                  */
	float *swing;     /* and its second                                       */
	float *best_points, *best_startup;
	float *rows;      /* the points again, node by node */
	float *loss;      /* nodes                                                */
	float *square;    /* squared distances of one node from those of a block */
	float *push;      /* factor by which each moves along them */
};

ESP_CHECKED enum esp_status discover_fit_init(struct fit *fit, const struct matrix *matrix, double unit,
                                              const struct embed_options *options, struct error *err);
void discover_fit_fini(struct fit *fit); /* accepts a zeroed struct */

/* Random points; start-up costs of half the distance to the nearest node. */
void discover_fit_start(struct fit *fit, uint64_t seed);

/* Fills slope at the current points; returns the sum over the known pairs, each counted twice. */
double discover_fit_slope(struct fit *fit);

/* Runs all steps; the best point on the way is in best_points and best_startup. */
void discover_fit_run(struct fit *fit);

#endif
