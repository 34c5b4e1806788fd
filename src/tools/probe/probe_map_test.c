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
	CHECK(probe_tool_map(&embedding, x, y) == ESP_OK);
	for (int i = 0; i < NODES; i++)
		CHECK(x[i] >= -1e-9 && x[i] <= 1 + 1e-9 && y[i] >= -1e-9 && y[i] <= 1 + 1e-9);
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < i; j++)
			largest = fmax(largest,
			               hypot(flat[i][0] - flat[j][0], flat[i][1] - flat[j][1]) / hypot(x[i] - x[j], y[i] - y[j]));
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < i; j++) {
			double real = hypot(flat[i][0] - flat[j][0], flat[i][1] - flat[j][1]),
				   drawn = hypot(x[i] - x[j], y[i] - y[j]);
			CHECK_MSG(fabs(real - drawn * largest) < 0.05, "%d and %d: %f, drawn %f", i, j, real, drawn * largest);
		}
}

static void test_one_point(void)
{
	double points[6] = {1, 2, 3, 1, 2, 3}, x[2], y[2];
	struct embedding embedding = {.nodes = 2, .dimensions = 3, .alpha = 1, .points = points};

	CHECK(probe_tool_map(&embedding, x, y) == ESP_OK);
	CHECK(x[0] == 0.5 && y[1] == 0.5);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	for (uint64_t i = 0; i < 20; i++)
		test_plane(seed + i);
	test_one_point();
	return 0;
}
