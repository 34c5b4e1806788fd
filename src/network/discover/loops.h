/*
 * loops.h - the inner loops of grouping many nodes, which the compiler vectorises; for cluster.c,
 * affinity_judge.c and affinity_ways.c. Pure.
 *
 * Values of different nodes are independent of each other; sums go over a fixed number of lanes. So the bits do
 * not depend on the width of the vectors. Arrays do not overlap.
 */
#ifndef NETWORK_DISCOVER_LOOPS_H
#define NETWORK_DISCOVER_LOOPS_H

#include <stdint.h>

/* ---- distances ---- */

/*
 * The squared distances of all nodes from a point, each summed dimension by dimension. columns: the nodes,
 * dimensions * nodes, dimension by dimension; at: the point; out: by node.
 */
void discover_loops_squares(const double *columns, uint32_t nodes, uint32_t dimensions, const double *at, double *out);

/* The sum of the smaller of a[i] and b[i], in order. */
double discover_loops_sum_lesser(const double *a, const double *b, uint32_t count);

/* ---- residuals of a model ---- */

/* One node's row: measured distances, own parts, and a gap to nodes of other groups (group numbers as doubles). */
struct loops_row {
	const double *values; /* NAN: unknown */
	const double *own;
	const double *group;
	double own_here, group_here, gap;
	uint32_t count;
};
void discover_loops_left(const struct loops_row *row, double *out_left);

/*
 * The weights in Student's t distribution with `tails` degrees of freedom and a deviation of 1 / steepness:
 * about 1 for a small residual, less the larger it is; 0 if it is unknown, and the residual becomes 0.
 */
void discover_loops_weigh(double *left, uint32_t count, double tails, double steepness, double *out_counts);

/* 1 + (left * steepness)^2 / tails; 1 if unknown. */
void discover_loops_odds(const double *left, uint32_t count, double tails, double steepness, double *out_odds);

/* Sets the values of nodes of the same group to 0. */
void discover_loops_keep_apart(const struct loops_row *row, double *values);

/* ---- the same with ways of groups and asymmetric noise ---- */

/*
 * The gap to a node of another group is `gap` plus its way; distances of at least `most` may be longer, and
 * have no negative residual.
 */
struct loops_way_row {
	const double *values; /* NAN: unknown */
	const double *own, *group, *way;
	double own_here, group_here, gap, most;
	uint32_t count;
};
void discover_loops_way_left(const struct loops_way_row *row, double *out_left);

/*
 * discover_loops_weigh() and discover_loops_odds() with separate degrees of freedom for pairs nearer than the model
 * predicts; out_near and out_far are 1 for pairs of the other side.
 */
struct loops_tails {
	double near, far, steepness;
};
void discover_loops_way_weigh(double *left, uint32_t count, const struct loops_tails *tails, double *out_counts);
void discover_loops_way_odds(const double *left, uint32_t count, const struct loops_tails *tails, double *out_near,
                             double *out_far);

double discover_loops_sum(const double *a, uint32_t count);
double discover_loops_dot(const double *a, const double *b, uint32_t count);

/* The sum of the logarithms of numbers >= 1. */
double discover_loops_sum_logs(const double *a, uint32_t count);

#endif
