#include "network/discover/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "network/discover/assign.h"
#include "network/discover/loops.h"

#define ROUNDS_DEFAULT 50u

/* One run: the points are borrowed, the rest is its own. */
struct means {
	const double *points;
	uint32_t nodes, dimensions, groups;
	double *columns;    /* the points, dimension by dimension */
	double *centres;    /* groups * dimensions */
	double *cost;       /* groups * nodes: squared distances */
	uint32_t *group_of, *before;
	double *nearest;    /* by node: squared distance to the nearest centre so far */
};

uint32_t discover_cluster_least(uint32_t nodes, uint32_t groups, double elasticity)
{
	double least = floor((double)nodes / groups / elasticity);

	return least < 1 ? 1 : (uint32_t)least;
}

static double square(const double *a, const double *b, uint32_t dimensions)
{
	double sum = 0;

	for (uint32_t k = 0; k < dimensions; k++)
		sum += (a[k] - b[k]) * (a[k] - b[k]);
	return sum;
}

static const double *point(const struct means *means, uint32_t node)
{
	return means->points + (size_t)node * means->dimensions;
}

static double *centre(const struct means *means, uint32_t group)
{
	return means->centres + (size_t)group * means->dimensions;
}

static double *costs(const struct means *means, uint32_t group)
{
	return means->cost + (size_t)group * means->nodes;
}

static void turn_columns(struct means *means)
{
	for (uint32_t i = 0; i < means->nodes; i++) {
		for (uint32_t k = 0; k < means->dimensions; k++)
			means->columns[(size_t)k * means->nodes + i] = point(means, i)[k];
	}
}

/* A random node with probability proportional to weight[]; if all weights are 0, uniform. */
static uint32_t draw(struct rng *rng, const double *weight, uint32_t nodes)
{
	double sum = 0;

	for (uint32_t i = 0; i < nodes; i++)
		sum += weight[i];
	if (!(sum > 0))
		return (uint32_t)rng_below(rng, nodes);
	double left = rng_unit(rng) * sum;
	uint32_t last = 0;
	for (uint32_t i = 0; i < nodes; i++) {
		if (!(weight[i] > 0))
			continue;
		last = i;
		if (left < weight[i])
			break;
		left -= weight[i];
	}
	return last;
}

/*
 * k-means++: each centre is a point, drawn in proportion to the squared distance from the previous centres. The
 * best of a few draws is used, as with single draws and many groups some group nearly always stays without a
 * centre. The group's row of costs holds the distances from the drawn point.
 */
static uint32_t draw_centre(struct rng *rng, const struct means *means, uint32_t group)
{
	uint32_t best = 0, draws = 2;
	double least = INFINITY;

	for (uint32_t groups = means->groups; groups > 2; groups /= 3)
		draws++;
	for (uint32_t i = 0; i < draws; i++) {
		uint32_t other = draw(rng, means->nearest, means->nodes);

		discover_loops_squares(means->columns, means->nodes, means->dimensions, point(means, other),
		                       costs(means, group));
		double sum = discover_loops_sum_lesser(costs(means, group), means->nearest, means->nodes);
		if (i == 0 || sum < least) {
			least = sum;
			best = other;
		}
	}
	return best;
}

static void seed_centres(struct means *means, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t i = 0; i < means->nodes; i++)
		means->nearest[i] = INFINITY;
	for (uint32_t group = 0; group < means->groups; group++) {
		uint32_t chosen = group == 0 ? (uint32_t)rng_below(&rng, means->nodes) : draw_centre(&rng, means, group);
		const double *distance = costs(means, group);

		memcpy(centre(means, group), point(means, chosen), means->dimensions * sizeof(double));
		discover_loops_squares(means->columns, means->nodes, means->dimensions, centre(means, group),
		                       costs(means, group));
		for (uint32_t i = 0; i < means->nodes; i++)
			means->nearest[i] = distance[i] < means->nearest[i] ? distance[i] : means->nearest[i];
	}
}

static void compute_costs(struct means *means)
{
	for (uint32_t group = 0; group < means->groups; group++)
		discover_loops_squares(means->columns, means->nodes, means->dimensions, centre(means, group),
		                       costs(means, group));
}

static void move_centres(struct means *means)
{
	memset(means->centres, 0, (size_t)means->groups * means->dimensions * sizeof(double));
	uint32_t *sizes = means->before; /* unused until the next round */
	memset(sizes, 0, means->nodes * sizeof(*sizes));
	for (uint32_t i = 0; i < means->nodes; i++) {
		double *to = centre(means, means->group_of[i]);

		sizes[means->group_of[i]]++;
		for (uint32_t k = 0; k < means->dimensions; k++)
			to[k] += point(means, i)[k];
	}
	for (uint32_t group = 0; group < means->groups; group++) {
		for (uint32_t k = 0; k < means->dimensions; k++)
			centre(means, group)[k] /= sizes[group];
	}
}

static double total(const struct means *means)
{
	double sum = 0;

	for (uint32_t i = 0; i < means->nodes; i++)
		sum += square(point(means, i), centre(means, means->group_of[i]), means->dimensions);
	return sum;
}

static enum esp_status run(struct means *means, const struct cluster_options *options, double *out_inertia,
                           struct error *err)
{
	uint32_t rounds = options->rounds > 0 ? options->rounds : ROUNDS_DEFAULT;
	enum esp_status status = ESP_OK;

	turn_columns(means);
	seed_centres(means, options->seed);
	for (uint32_t round = 0; round < rounds; round++) {
		memcpy(means->before, means->group_of, means->nodes * sizeof(*means->before));
		compute_costs(means);
		status = discover_assign_least(means->cost, means->nodes, means->groups,
		                               options->least > 0 ? options->least : 1, means->group_of, err);
		if (status != ESP_OK)
			return status;
		if (round > 0 && memcmp(means->before, means->group_of, means->nodes * sizeof(*means->before)) == 0)
			break;
		move_centres(means);
	}
	*out_inertia = total(means);
	return ESP_OK;
}

enum esp_status discover_cluster_points(const double *points, uint32_t nodes, uint32_t dimensions,
                                        const struct cluster_options *options, struct grouping *out,
                                        double *out_inertia, struct error *err)
{
	struct means means = {.points = points, .nodes = nodes, .dimensions = dimensions, .groups = options->groups};
	double inertia = 0;

	if (options->groups == 0 || options->groups > nodes || (uint64_t)options->groups * options->least > nodes)
		return error_set(err, ESP_EINVAL, "%u nodes do not make %u groups of at least %u", nodes, options->groups,
		                 options->least);
	means.columns = calloc((size_t)nodes * dimensions, sizeof(*means.columns));
	means.centres = calloc((size_t)means.groups * dimensions, sizeof(*means.centres));
	means.cost = calloc((size_t)means.groups * nodes, sizeof(*means.cost));
	means.nearest = calloc(nodes, sizeof(*means.nearest));
	means.group_of = calloc(nodes, sizeof(*means.group_of));
	means.before = calloc(nodes, sizeof(*means.before));
	enum esp_status status = ESP_OK;
	if (!means.columns || !means.centres || !means.cost || !means.nearest || !means.group_of || !means.before)
		status = error_set(err, ESP_ENOMEM, "no memory to group %u nodes", nodes);
	else
		status = run(&means, options, &inertia, err);
	if (status == ESP_OK)
		status = grouping_from(out, means.group_of, nodes, err);
	free(means.columns);
	free(means.centres);
	free(means.cost);
	free(means.nearest);
	free(means.group_of);
	free(means.before);
	if (status == ESP_OK && out_inertia)
		*out_inertia = inertia;
	return status;
}

double discover_cluster_inertia(const double *points, uint32_t dimensions, const struct grouping *grouping)
{
	struct means means = {.points = points, .nodes = grouping->nodes, .dimensions = dimensions,
	                      .groups = grouping->count};
	double sum = NAN;

	means.group_of = grouping->group_of;
	means.centres = calloc((size_t)means.groups * dimensions, sizeof(*means.centres));
	means.before = calloc(means.nodes, sizeof(*means.before));
	if (means.centres && means.before) {
		move_centres(&means);
		sum = total(&means);
	}
	free(means.centres);
	free(means.before);
	return sum;
}
