#include "topo/silhouette.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Means of the distances of one node to each group. */
struct means {
	double *sum;
	uint32_t *count;
};

static double of_node(const struct matrix *distances, const struct grouping *grouping, uint32_t node, const struct means *means)
{
	uint32_t own = grouping->group_of[node];
	double nearest = INFINITY;

	memset(means->sum, 0, grouping->count * sizeof(*means->sum));
	memset(means->count, 0, grouping->count * sizeof(*means->count));
	for (uint32_t other = 0; other < grouping->nodes; other++) {
		double distance = matrix_get(distances, node, other);

		if (other == node || isnan(distance))
			continue;
		means->sum[grouping->group_of[other]] += distance;
		means->count[grouping->group_of[other]]++;
	}
	for (uint32_t group = 0; group < grouping->count; group++) {
		if (group != own && means->count[group] > 0)
			nearest = fmin(nearest, means->sum[group] / means->count[group]);
	}
	if (means->count[own] == 0 || isinf(nearest))
		return 0;
	double inside = means->sum[own] / means->count[own];
	return inside == nearest ? 0 : (nearest - inside) / fmax(nearest, inside);
}

double silhouette(const struct matrix *distances, const struct grouping *grouping)
{
	struct means means = {.sum = calloc(grouping->count, sizeof(*means.sum)), .count = calloc(grouping->count, sizeof(*means.count))};
	double sum = NAN;

	if (means.sum && means.count) {
		sum = 0;
		for (uint32_t node = 0; node < grouping->nodes; node++)
			sum += of_node(distances, grouping, node, &means);
	}
	free(means.sum);
	free(means.count);
	return sum / grouping->nodes;
}
