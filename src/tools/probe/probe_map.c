#include "tools/probe/probe_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS 300u

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
				scatter->covariance[a * dimensions + b] +=
					scatter->points[i * dimensions + a] * scatter->points[i * dimensions + b];
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

/* The direction of the largest remaining variance, which is then removed: power iteration and deflation. */
static void next_axis(struct scatter *scatter)
{
	uint32_t n = scatter->dimensions;
	double value = 0;

	for (uint32_t d = 0; d < n; d++)
		scatter->axis[d] = 1 + d * 0.1; /* not parallel to an axis of the embedding */
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

enum esp_status probe_tool_map(const struct embedding *embedding, double *out_x, double *out_y)
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
