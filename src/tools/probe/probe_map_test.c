#include "tools/probe/probe_map.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

/* Points of a plane in many dimensions, and a little noise: their distances are kept in the picture. */
static void test_plane(uint64_t seed)
{
	enum { NODES = 30, DIMENSIONS = 7 };
	double points[NODES * DIMENSIONS], flat[NODES][2], axes[2][DIMENSIONS], x[NODES], y[NODES];
	struct embedding embedding = {.nodes = NODES, .dimensions = DIMENSIONS, .alpha = 1, .points = points};
	struct rng rng;
	double largest = 0;

	rng_init(&rng, seed);
	for (int a = 0; a < 2; a++)
		for (int d = 0; d < DIMENSIONS; d++)
			axes[a][d] = d % 2 == a ? (d % 3 ? 0.5 : -0.5) : 0; /* at right angles */
	for (int d = 0; d < DIMENSIONS; d++)
		axes[1][d] *= 2.0 / sqrt(3); /* of equal length: four and three of them */
	for (int i = 0; i < NODES; i++) {
		flat[i][0] = 3 * rng_unit(&rng);
		flat[i][1] = rng_unit(&rng);
		for (int d = 0; d < DIMENSIONS; d++)
			points[i * DIMENSIONS + d] = 5 + flat[i][0] * axes[0][d] + flat[i][1] * axes[1][d] + 1e-4 * rng_unit(&rng);
	}
	CHECK(probe_map(&embedding, x, y) == ESP_OK);
	for (int i = 0; i < NODES; i++)
		CHECK(x[i] >= -1e-9 && x[i] <= 1 + 1e-9 && y[i] >= -1e-9 && y[i] <= 1 + 1e-9);
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < i; j++)
			largest = fmax(largest, hypot(flat[i][0] - flat[j][0], flat[i][1] - flat[j][1]) / hypot(x[i] - x[j], y[i] - y[j]));
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < i; j++) {
			double real = hypot(flat[i][0] - flat[j][0], flat[i][1] - flat[j][1]), drawn = hypot(x[i] - x[j], y[i] - y[j]);
			CHECK_MSG(fabs(real - drawn * largest) < 0.05, "%d and %d: %f, drawn %f", i, j, real, drawn * largest);
		}
}

static void test_one_point(void)
{
	double points[6] = {1, 2, 3, 1, 2, 3}, x[2], y[2];
	struct embedding embedding = {.nodes = 2, .dimensions = 3, .alpha = 1, .points = points};

	CHECK(probe_map(&embedding, x, y) == ESP_OK);
	CHECK(x[0] == 0.5 && y[1] == 0.5);
}

/* Afterwards nobody hides anybody, and whoever was far away has not moved. */
static void test_spread(uint64_t seed)
{
	enum { POINTS = 24 };
	double x[POINTS], y[POINTS];
	struct rng rng;

	rng_init(&rng, seed);
	for (int i = 0; i < POINTS; i++) {
		x[i] = i < 20 ? (i % 4) * 200 + rng_unit(&rng) : 2000;
		y[i] = i < 20 ? 100 : 1000.0 * i;
	}
	x[3] = x[7];
	probe_map_spread(x, y, POINTS, 14, 4);
	for (int i = 0; i < POINTS; i++)
		for (int j = 0; j < i; j++)
			CHECK_MSG(hypot((x[i] - x[j]) / 4, y[i] - y[j]) > 13.9, "%d and %d", i, j);
	for (int i = 20; i < POINTS; i++)
		CHECK(x[i] == 2000 && y[i] == 1000.0 * i);
}

/* Labels of one side stand in the order of their points, a line apart, within the picture if they fit, and where nothing is in the way at their point. */
static void test_labels(uint64_t seed)
{
	enum { MOST = 80 };
	double x[MOST], y[MOST];
	struct probe_map_label labels[MOST];
	struct rng rng;

	rng_init(&rng, seed);
	uint32_t count = 1 + (uint32_t)rng_below(&rng, MOST), lefts = 0;
	bool heaps = rng_chance(&rng, 1, 2);
	for (uint32_t i = 0; i < count; i++) {
		x[i] = heaps ? 100.0 * (i % 3) : 500 * rng_unit(&rng);
		y[i] = heaps ? 200.0 * (i % 2) + 100 : 500 * rng_unit(&rng);
	}
	uint32_t a_side = (count + 1) / 2;
	double bottom = fmax(500, 14.0 * (a_side - 1));
	CHECK(probe_map_labels(x, y, count, 0, bottom, 14, labels) == ESP_OK);
	for (uint32_t i = 0; i < count; i++) {
		CHECK_MSG(labels[i].y >= -1e-6 && labels[i].y <= bottom + 1e-6, "seed %" PRIu64 ": %f", seed, labels[i].y);
		lefts += labels[i].is_left;
		bool free_way = y[i] <= bottom;
		for (uint32_t j = 0; j < count; j++) {
			if (j == i || labels[j].is_left != labels[i].is_left)
				continue;
			CHECK_MSG(fabs(labels[i].y - labels[j].y) > 14 - 1e-6, "seed %" PRIu64 ": %u and %u", seed, i, j);
			CHECK(y[i] <= y[j] || labels[i].y > labels[j].y);
			free_way = free_way && fabs(labels[j].y - y[i]) > 28 && fabs(y[j] - y[i]) > 28;
		}
		CHECK_MSG(!free_way || fabs(labels[i].y - y[i]) < 1e-6, "seed %" PRIu64 ": %u of %u is at %f, not %f", seed, i, count, labels[i].y, y[i]);
	}
	CHECK_U64(lefts, (count + 1) / 2);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	for (uint64_t i = 0; i < 20; i++)
		test_plane(seed + i);
	for (uint64_t i = 0; i < 20; i++)
		test_spread(seed + i);
	for (uint64_t i = 0; i < 200; i++)
		test_labels(seed + i);
	test_one_point();
	return 0;
}
