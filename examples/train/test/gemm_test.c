#include "../gemm.h"

#include "../random.h"
#include "base/check.h"

static float *random_floats(struct random *random, size_t count)
{
	float *floats = malloc((count + 1) * sizeof floats[0]);
	CHECK(floats);
	for (size_t i = 0; i < count; i++)
		floats[i] = random_between(random, -2, 2);
	return floats;
}

static float element(struct matrix matrix, size_t i, size_t j)
{
	return matrix.at[i * matrix.row + j * matrix.column];
}

/* The definition: the result is equal, not nearly, whatever the vectors do. */
static void check_product(const float *c, struct matrix a, struct matrix b, size_t m, size_t k, size_t n)
{
	for (size_t i = 0; i < m; i++) {
		for (size_t j = 0; j < n; j++) {
			float sum = 0;
			for (size_t l = 0; l < k; l++)
				sum += element(a, i, l) * element(b, l, j);
			CHECK_MSG(sum == c[i * n + j],
			          "%zu x %zu x %zu: element %zu, %zu is %.9g, expected %.9g", m, k, n, i, j, c[i * n + j], sum);
		}
	}
}

static void test_sizes(struct random *random, size_t m, size_t k, size_t n)
{
	float *a = random_floats(random, m * k), *b = random_floats(random, k * n), *c = random_floats(random, m * n);
	struct matrix as[] = {{a, k, 1}, {a, 1, m}}, bs[] = {{b, n, 1}, {b, 1, k}};
	for (int form = 0; form < 4; form++) {
		gemm(c, as[form / 2], bs[form % 2], m, k, n);
		check_product(c, as[form / 2], bs[form % 2], m, k, n);
	}
	free(a);
	free(b);
	free(c);
}

int main(int argc, char **argv)
{
	struct random random = {test_seed(argc, argv, 1)};
	/* Around the sides of a tile (4, 16) and the depth of a panel (256). */
	static const size_t rows[] = {1, 3, 4, 9}, depths[] = {1, 16, 256, 257, 600}, columns[] = {1, 10, 16, 33, 48};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t j = 0; j < sizeof depths / sizeof depths[0]; j++)
			for (size_t l = 0; l < sizeof columns / sizeof columns[0]; l++)
				test_sizes(&random, rows[i], depths[j], columns[l]);
	for (int i = 0; i < 50; i++)
		test_sizes(&random, 1 + random_below(&random, 20), 1 + random_below(&random, 300),
		           1 + random_below(&random, 50));
	return 0;
}
