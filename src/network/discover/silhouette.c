#include "network/discover/silhouette.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Means of the distances of one node to each group. */
struct means {
	double *sum;
	uint32_t *count;
};

/* Mean distances of a node to its own group and to the nearest other; INFINITY: unknown, or there is none. */
struct sides {
	double inside, nearest;
};

static struct sides sides_of(const struct matrix *distances, const struct grouping *grouping, uint32_t node,
                             const struct means *means)
{
	uint32_t own = grouping->group_of[node];
	struct sides sides = {INFINITY, INFINITY};

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
		if (means->count[group] == 0)
			continue;
		double mean = means->sum[group] / means->count[group];
		if (group == own)
			sides.inside = mean;
		else
			sides.nearest = fmin(sides.nearest, mean);
	}
	return sides;
}

static double between(struct sides sides)
{
	if (isinf(sides.inside) || isinf(sides.nearest) || sides.inside == sides.nearest)
		return 0;
	return (sides.nearest - sides.inside) / fmax(sides.nearest, sides.inside);
}

static bool means_init(struct means *means, uint32_t groups)
{
	means->sum = calloc(groups, sizeof(*means->sum));
	means->count = calloc(groups, sizeof(*means->count));
	return means->sum && means->count;
}

static void means_fini(struct means *means)
{
	free(means->sum);
	free(means->count);
}

double discover_silhouette(const struct matrix *distances, const struct grouping *grouping)
{
	struct means means;
	double sum = means_init(&means, grouping->count) ? 0 : NAN;

	for (uint32_t node = 0; node < grouping->nodes && !isnan(sum); node++)
		sum += between(sides_of(distances, grouping, node, &means));
	means_fini(&means);
	return sum / grouping->nodes;
}

/* First the nodes with others in their group: their usual distance stands in for that of a single node. */
static double mean_of_groups(const struct matrix *distances, const struct grouping *grouping, const struct means *means,
                             const uint32_t *sizes)
{
	double sum = 0, inside = 0;
	uint32_t counted = 0;

	for (uint32_t node = 0; node < grouping->nodes; node++) {
		struct sides sides = sides_of(distances, grouping, node, means);

		if (isinf(sides.inside))
			continue;
		sum += between(sides) / sizes[grouping->group_of[node]];
		inside += sides.inside;
		counted++;
	}
	for (uint32_t node = 0; node < grouping->nodes && counted > 0; node++) {
		struct sides sides = sides_of(distances, grouping, node, means);

		if (sizes[grouping->group_of[node]] == 1)
			sum += between((struct sides){inside / counted, sides.nearest});
	}
	return sum / grouping->count;
}

double discover_silhouette_of_groups(const struct matrix *distances, const struct grouping *grouping)
{
	struct means means;
	uint32_t *sizes = calloc(grouping->count, sizeof(*sizes));
	double mean = NAN;

	if (means_init(&means, grouping->count) && sizes) {
		grouping_sizes(grouping, sizes);
		mean = mean_of_groups(distances, grouping, &means, sizes);
	}
	means_fini(&means);
	free(sizes);
	return mean;
}
