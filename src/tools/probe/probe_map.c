#include "tools/probe/probe_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS 300u
#define SPREADS 200u
#define SPREAD_MOST 512u /* points; among more of them nobody reads single ones */

struct scatter {
	uint32_t nodes, dimensions;
	double *points;     /* centred */
	double *covariance; /* dimensions * dimensions */
	double *axis, *next;
};

static void scatter_fini(struct scatter *scatter)
{
	free(scatter->points);
	free(scatter->covariance);
	free(scatter->axis);
	free(scatter->next);
}

static bool scatter_init(struct scatter *scatter, const struct embedding *embedding)
{
	size_t nodes = embedding->nodes, dimensions = embedding->dimensions;

	*scatter = (struct scatter){.nodes = embedding->nodes, .dimensions = embedding->dimensions};
	scatter->points = malloc(nodes * dimensions * sizeof(double));
	scatter->covariance = calloc(dimensions * dimensions, sizeof(double));
	scatter->axis = calloc(dimensions, sizeof(double));
	scatter->next = calloc(dimensions, sizeof(double));
	if (!scatter->points || !scatter->covariance || !scatter->axis || !scatter->next)
		return false;
	memcpy(scatter->points, embedding->points, nodes * dimensions * sizeof(double));
	for (size_t d = 0; d < dimensions; d++) {
		double mean = 0;
		for (size_t i = 0; i < nodes; i++)
			mean += scatter->points[i * dimensions + d] / (double)nodes;
		for (size_t i = 0; i < nodes; i++)
			scatter->points[i * dimensions + d] -= mean;
	}
	for (size_t i = 0; i < nodes; i++)
		for (size_t a = 0; a < dimensions; a++)
			for (size_t b = 0; b < dimensions; b++)
				scatter->covariance[a * dimensions + b] += scatter->points[i * dimensions + a] * scatter->points[i * dimensions + b];
	return true;
}

static double normalise(double *vector, uint32_t count)
{
	double length = 0;

	for (uint32_t d = 0; d < count; d++)
		length += vector[d] * vector[d];
	length = sqrt(length);
	for (uint32_t d = 0; d < count; d++)
		vector[d] = length > 0 ? vector[d] / length : 0;
	return length;
}

/* The direction in which most is left, which is then taken out: power iteration and deflation. */
static void next_axis(struct scatter *scatter)
{
	uint32_t n = scatter->dimensions;
	double value = 0;

	for (uint32_t d = 0; d < n; d++)
		scatter->axis[d] = 1 + d * 0.1; /* along no axis of the embedding */
	normalise(scatter->axis, n);
	for (uint32_t i = 0; i < ITERATIONS; i++) {
		memset(scatter->next, 0, n * sizeof(double));
		for (uint32_t a = 0; a < n; a++)
			for (uint32_t b = 0; b < n; b++)
				scatter->next[a] += scatter->covariance[(size_t)a * n + b] * scatter->axis[b];
		value = normalise(scatter->next, n);
		if (value <= 0)
			break;
		memcpy(scatter->axis, scatter->next, n * sizeof(double));
	}
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = 0; b < n; b++)
			scatter->covariance[(size_t)a * n + b] -= value * scatter->axis[a] * scatter->axis[b];
}

static void project(const struct scatter *scatter, double *out)
{
	for (uint32_t i = 0; i < scatter->nodes; i++) {
		out[i] = 0;
		for (uint32_t d = 0; d < scatter->dimensions; d++)
			out[i] += scatter->points[(size_t)i * scatter->dimensions + d] * scatter->axis[d];
	}
}

static void bounds(const double *values, uint32_t count, double *out_least, double *out_most)
{
	*out_least = INFINITY;
	*out_most = -INFINITY;
	for (uint32_t i = 0; i < count; i++) {
		*out_least = fmin(*out_least, values[i]);
		*out_most = fmax(*out_most, values[i]);
	}
}

static void fit(double *values, uint32_t count, double scale)
{
	double least, most;

	bounds(values, count, &least, &most);
	for (uint32_t i = 0; i < count; i++)
		values[i] = scale > 0 ? 0.5 + (values[i] - (least + most) / 2) / scale : 0.5;
}

enum esp_status probe_map(const struct embedding *embedding, double *out_x, double *out_y)
{
	struct scatter scatter;
	double left, right, low, high;
	bool fine = scatter_init(&scatter, embedding);

	if (fine) {
		next_axis(&scatter);
		project(&scatter, out_x);
		next_axis(&scatter);
		project(&scatter, out_y);
		bounds(out_x, embedding->nodes, &left, &right);
		bounds(out_y, embedding->nodes, &low, &high);
		fit(out_x, embedding->nodes, fmax(right - left, high - low));
		fit(out_y, embedding->nodes, fmax(right - left, high - low));
	}
	scatter_fini(&scatter);
	return fine ? ESP_OK : ESP_ENOMEM;
}

/* True: they were too near. */
static bool part(double *x, double *y, uint32_t a, uint32_t b, double least, double wider)
{
	double dx = (x[b] - x[a]) / wider, dy = y[b] - y[a], distance = hypot(dx, dy);

	if (distance >= least)
		return false;
	double push = 0.51 * (least - distance);
	if (distance < least * 1e-6) { /* one upon the other: apart in height */
		dx = 0;
		dy = distance = 1;
	}
	double step = push / distance;
	x[a] -= dx * wider * step;
	x[b] += dx * wider * step;
	y[a] -= dy * step;
	y[b] += dy * step;
	return true;
}

void probe_map_spread(double *x, double *y, uint32_t count, double least, double wider)
{
	bool moved = count <= SPREAD_MOST;

	for (uint32_t i = 0; i < SPREADS && moved; i++) {
		moved = false;
		for (uint32_t a = 0; a < count; a++)
			for (uint32_t b = a + 1; b < count; b++)
				moved = part(x, y, a, b, least, wider) || moved;
	}
}

/* ---- labels ---- */

struct anchor {
	double x, y;
	uint32_t point;
};

static int compare_across(const void *a, const void *b)
{
	const struct anchor *one = a, *other = b;

	if (one->x != other->x)
		return one->x < other->x ? -1 : 1;
	return (one->point > other->point) - (one->point < other->point);
}

static int compare_down(const void *a, const void *b)
{
	const struct anchor *one = a, *other = b;

	return one->y != other->y ? (one->y < other->y ? -1 : 1) : compare_across(a, b);
}

/* A run of labels without room between them: where its first one would best be, on average over them. */
struct run {
	double sum;
	uint32_t count;
};

static double begin_of(const struct run *run)
{
	return run->sum / run->count;
}

/*
 * The labels of one side, sorted by height. If the nth label gives up n lines of its height, "not nearer than a line" becomes "not above the one before";
 * what comes nearest to that in the sum of squares are means of those who are in each other's way.
 */
static void stack(const struct anchor *anchors, uint32_t count, double top, double bottom, double line, bool is_left, struct run *runs,
                  struct probe_map_label *out)
{
	double last = fmax(bottom - (count - 1.0) * line, top);
	uint32_t used = 0, at = 0;

	for (uint32_t i = 0; i < count; i++) {
		runs[used++] = (struct run){anchors[i].y - i * line, 1};
		for (; used > 1 && begin_of(&runs[used - 1]) < begin_of(&runs[used - 2]); used--) {
			runs[used - 2].sum += runs[used - 1].sum;
			runs[used - 2].count += runs[used - 1].count;
		}
	}
	for (uint32_t r = 0; r < used; r++)
		for (uint32_t i = 0; i < runs[r].count; i++, at++)
			out[anchors[at].point] = (struct probe_map_label){is_left, fmin(fmax(begin_of(&runs[r]), top), last) + at * line};
}

enum esp_status probe_map_labels(const double *x, const double *y, uint32_t count, double top, double bottom, double line,
                                 struct probe_map_label *out)
{
	struct anchor *anchors = calloc(count, sizeof(*anchors));
	struct run *runs = calloc(count, sizeof(*runs));
	uint32_t left = (count + 1) / 2;
	bool fine = (anchors && runs) || count == 0;

	if (fine && count > 0) {
		for (uint32_t i = 0; i < count; i++)
			anchors[i] = (struct anchor){x[i], y[i], i};
		qsort(anchors, count, sizeof(*anchors), compare_across);
		qsort(anchors, left, sizeof(*anchors), compare_down);
		qsort(anchors + left, count - left, sizeof(*anchors), compare_down);
		stack(anchors, left, top, bottom, line, true, runs, out);
		stack(anchors + left, count - left, top, bottom, line, false, runs, out);
	}
	free(anchors);
	free(runs);
	return fine ? ESP_OK : ESP_ENOMEM;
}
