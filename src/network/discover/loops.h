/*
 * loops.h - what grouping many nodes spends its time in: loops over all nodes, which the compiler makes vectors of; a part of cluster.c
 * affinity_judge.c and affinity_ways.c.
 *
 * Values that belong to different nodes are independent of each other; sums go over lanes of a fixed number. So no bit depends on how wide
 * the vectors are. Arrays do not overlap.
 */
#ifndef NETWORK_DISCOVER_LOOPS_H
#define NETWORK_DISCOVER_LOOPS_H

#include <stdint.h>

/* ---- distances ---- */

/*
 * The squares of the distances of all nodes from a point, each added up dimension after dimension. columns: the nodes, dimensions * nodes,
 * dimension by dimension; at: dimensions numbers; out: nodes.
 */
void loops_squares(const double *columns, uint32_t nodes, uint32_t dimensions, const double *at, double *out);

/* The sum of the lesser of each two, one after the other. */
double loops_sum_lesser(const double *a, const double *b, uint32_t count);

/* ---- what a model leaves ---- */

/* One node's row of a model: what was measured, what the nodes' own parts explain, and a gap to nodes of other groups (numbers of groups as doubles). */
struct loops_row {
	const double *values; /* NAN: not known */
	const double *own;
	const double *group;
	double own_here, group_here, gap;
	uint32_t count;
};
void loops_left(const struct loops_row *row, double *out_left);

/*
 * How much each counts with Student's distribution of so many degrees of freedom and a deviation of 1 / steepness: about 1 if little is left, less
 * the more is left; 0 if it is not known. What is left becomes 0 then.
 */
void loops_weigh(double *left, uint32_t count, double tails, double steepness, double *out_counts);

/* 1 + (left * steepness)^2 / tails; 1 if it is not known. */
void loops_odds(const double *left, uint32_t count, double tails, double steepness, double *out_odds);

/* Keeps what stands at nodes of other groups; the others become 0. */
void loops_keep_apart(const struct loops_row *row, double *values);

/* ---- the same, where groups have ways and noise lengthens ---- */

/* Two nodes of different groups are gap + way of the other further; what is as far as `most` may be further, and nothing is left of it then. */
struct loops_way_row {
	const double *values; /* NAN: not known */
	const double *own, *group, *way;
	double own_here, group_here, gap, most;
	uint32_t count;
};
void loops_way_left(const struct loops_way_row *row, double *out_left);

/* loops_weigh() and loops_odds() with degrees of freedom of their own for what is nearer than the model says; 1 where it is of the other kind. */
struct loops_tails {
	double near, far, steepness;
};
void loops_way_weigh(double *left, uint32_t count, const struct loops_tails *tails, double *out_counts);
void loops_way_odds(const double *left, uint32_t count, const struct loops_tails *tails, double *out_near, double *out_far);

double loops_sum(const double *a, uint32_t count);
double loops_dot(const double *a, const double *b, uint32_t count);

/* The sum of the logarithms of numbers that are at least 1. */
double loops_sum_logs(const double *a, uint32_t count);

#endif
