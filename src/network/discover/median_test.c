#include "network/discover/median.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define COUNT_MAX 40

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	for (int turn = 0; turn < 20000; turn++) {
		double values[COUNT_MAX], sorted[COUNT_MAX];
		size_t count = 1 + rng_below(&rng, COUNT_MAX), index = rng_below(&rng, count);
		uint64_t different = 1 + rng_below(&rng, 20); /* few values: many are equal */

		for (size_t i = 0; i < count; i++)
			sorted[i] = values[i] = (double)rng_below(&rng, different);
		qsort(sorted, count, sizeof(*sorted), compare);
		if (turn % 3 == 0)
			memcpy(values, sorted, sizeof(values));
		CHECK(discover_median_nth(values, count, index) == sorted[index]);
		CHECK(median(values, count) == (sorted[(count - 1) / 2] + sorted[count / 2]) / 2);
	}
	return 0;
}
