#include "network/discover/loops.h"

#include <math.h>
#include <string.h>

#include "network/discover/vectors.h"

#define LANES 8u

/* ---- distances ---- */

WIDE void discover_loops_squares(const double *columns, uint32_t nodes, uint32_t dimensions, const double *at,
                                 double *out)
{
	double *restrict square = out;

	memset(square, 0, nodes * sizeof(*square));
	for (uint32_t k = 0; k < dimensions; k++) {
		const double *restrict x = columns + (size_t)k * nodes;
		double here = at[k];

		for (uint32_t i = 0; i < nodes; i++)
			square[i] += (x[i] - here) * (x[i] - here);
	}
}

double discover_loops_sum_lesser(const double *a, const double *b, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += a[i] < b[i] ? a[i] : b[i];
	return sum;
}

/* ---- residuals of a model ---- */

WIDE void discover_loops_left(const struct loops_row *row, double *out_left)
{
	const double *restrict values = row->values, *restrict own = row->own, *restrict group = row->group;
	double *restrict left = out_left;
	double own_here = row->own_here, group_here = row->group_here, gap = row->gap;

	for (uint32_t j = 0; j < row->count; j++)
		left[j] = values[j] - own_here - own[j] - (group[j] != group_here ? gap : 0);
}

WIDE void discover_loops_weigh(double *left, uint32_t count, double tails, double steepness, double *out_counts)
{
	double *restrict rest = left, *restrict counts = out_counts;

	for (uint32_t j = 0; j < count; j++) {
		double off = rest[j] * steepness, weight = (tails + 1) / (tails + off * off);

		counts[j] = rest[j] == rest[j] ? weight : 0;
		rest[j] = rest[j] == rest[j] ? rest[j] : 0;
	}
}

WIDE void discover_loops_odds(const double *left, uint32_t count, double tails, double steepness, double *out_odds)
{
	const double *restrict rest = left;
	double *restrict odds = out_odds;

	for (uint32_t j = 0; j < count; j++) {
		double off = rest[j] * steepness, one = 1 + off * off / tails;

		odds[j] = rest[j] == rest[j] ? one : 1;
	}
}

WIDE void discover_loops_keep_apart(const struct loops_row *row, double *values)
{
	const double *restrict group = row->group;
	double *restrict kept = values;
	double group_here = row->group_here;

	for (uint32_t j = 0; j < row->count; j++)
		kept[j] = group[j] != group_here ? kept[j] : 0;
}

WIDE void discover_loops_way_left(const struct loops_way_row *row, double *out_left)
{
	const double *restrict values = row->values, *restrict own = row->own, *restrict group = row->group,
	    *restrict way = row->way;
	double *restrict left = out_left;
	double own_here = row->own_here, group_here = row->group_here, gap = row->gap, most = row->most;

	for (uint32_t j = 0; j < row->count; j++) {
		double rest = values[j] - own_here - own[j] - (group[j] != group_here ? gap + way[j] : 0);
		double beyond = rest < 0 ? 0 : rest;

		left[j] = values[j] >= most ? beyond : rest;
	}
}

WIDE void discover_loops_way_weigh(double *left, uint32_t count, const struct loops_tails *tails, double *out_counts)
{
	double *restrict rest = left, *restrict counts = out_counts;
	double near = tails->near, far = tails->far, steepness = tails->steepness;

	for (uint32_t j = 0; j < count; j++) {
		double off = rest[j] * steepness, here = rest[j] < 0 ? near : far, weight = (here + 1) / (here + off * off);

		counts[j] = rest[j] == rest[j] ? weight : 0;
		rest[j] = rest[j] == rest[j] ? rest[j] : 0;
	}
}

WIDE void discover_loops_way_odds(const double *left, uint32_t count, const struct loops_tails *tails, double *out_near,
                                  double *out_far)
{
	const double *restrict rest = left;
	double *restrict nearer = out_near, *restrict further = out_far;
	double near = tails->near, far = tails->far, steepness = tails->steepness;

	for (uint32_t j = 0; j < count; j++) {
		double off = rest[j] * steepness, square = off * off;

		nearer[j] = rest[j] < 0 ? 1 + square / near : 1;
		further[j] = rest[j] > 0 ? 1 + square / far : 1;
	}
}

static double sum_lanes(const double lanes[LANES])
{
	return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

WIDE double discover_loops_sum(const double *a, uint32_t count)
{
	double lanes[LANES] = {0};
	uint32_t i = 0;

	for (; i + LANES <= count; i += LANES) {
		for (uint32_t lane = 0; lane < LANES; lane++)
			lanes[lane] += a[i + lane];
	}
	for (; i < count; i++)
		lanes[i % LANES] += a[i];
	return sum_lanes(lanes);
}

WIDE double discover_loops_dot(const double *a, const double *b, uint32_t count)
{
	double lanes[LANES] = {0};
	uint32_t i = 0;

	for (; i + LANES <= count; i += LANES) {
		for (uint32_t lane = 0; lane < LANES; lane++)
			lanes[lane] += a[i + lane] * b[i + lane];
	}
	for (; i < count; i++)
		lanes[i % LANES] += a[i] * b[i];
	return sum_lanes(lanes);
}

/* Logarithms of products rather than of single numbers, as long as the products are finite. */
double discover_loops_sum_logs(const double *a, uint32_t count)
{
	double sum = 0;
	uint32_t i = 0;

	for (; i + LANES <= count; i += LANES) {
		double product = ((a[i] * a[i + 4]) * (a[i + 2] * a[i + 6])) * ((a[i + 1] * a[i + 5]) * (a[i + 3] * a[i + 7]));

		if (isfinite(product)) {
			sum += log(product);
			continue;
		}
		for (uint32_t lane = 0; lane < LANES; lane++)
			sum += log(a[i + lane]);
	}
	for (; i < count; i++)
		sum += log(a[i]);
	return sum;
}
