#include "network/topo/matrix.h"

#include <math.h>

#include "base/check.h"

static struct matrix make(uint32_t size)
{
	struct matrix matrix;
	struct error err;

	CHECK(matrix_init(&matrix, size, &err) == ESP_OK);
	return matrix;
}

static void test_init(void)
{
	struct matrix matrix = make(3), copy;
	struct error err;

	CHECK(matrix_get(&matrix, 1, 1) == 0 && isnan(matrix_get(&matrix, 0, 2)) && matrix_known(&matrix) == 0);
	CHECK(matrix_check(&matrix, &err) == ESP_OK);
	matrix_set(&matrix, 2, 0, 5);
	CHECK(matrix_get(&matrix, 0, 2) == 5 && matrix_known(&matrix) == 1);
	CHECK(matrix_copy(&copy, &matrix, &err) == ESP_OK && matrix_get(&copy, 2, 0) == 5 &&
	      isnan(matrix_get(&copy, 1, 0)));
	matrix_fini(&copy);
	matrix_fini(&matrix);
	matrix_fini(&matrix);
	CHECK(matrix_init(&matrix, 0, &err) == ESP_ELIMIT && matrix_init(&matrix, MATRIX_SIZE_MAX + 1, &err) == ESP_ELIMIT);
	CHECK_STR(err.text, "distances between 4097 nodes: there can be 1 to 4096");
}

static void test_symmetrise(void)
{
	static const struct {
		enum matrix_joining joining;
		double wanted;
	} cases[] = {{MATRIX_MEAN, 3}, {MATRIX_SMALLER, 2}, {MATRIX_LARGER, 4}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct matrix matrix = make(3);
		struct error err;

		matrix.at[0 * 3 + 1] = 2;
		matrix.at[1 * 3 + 0] = 4;
		matrix.at[2 * 3 + 0] = 7; /* known in one direction only */
		matrix.at[2 * 3 + 2] = 9;
		CHECK(matrix_check(&matrix, &err) == ESP_EINVAL);
		matrix_symmetrise(&matrix, cases[i].joining);
		CHECK(matrix_check(&matrix, &err) == ESP_OK);
		CHECK(matrix_get(&matrix, 0, 1) == cases[i].wanted && matrix_get(&matrix, 1, 0) == cases[i].wanted);
		CHECK(matrix_get(&matrix, 0, 2) == 7 && matrix_get(&matrix, 2, 2) == 0 && isnan(matrix_get(&matrix, 1, 2)));
		matrix_fini(&matrix);
	}
}

static void check_bad(uint32_t i, uint32_t j, double there, double back, const char *reason)
{
	struct matrix matrix = make(3);
	struct error err;

	matrix.at[i * 3 + j] = there;
	matrix.at[j * 3 + i] = back;
	CHECK(matrix_check(&matrix, &err) == ESP_EINVAL);
	CHECK_STR(err.text, reason);
	matrix_fini(&matrix);
}

static void test_check(void)
{
	struct error err;

	check_bad(0, 1, -1, -1, "the distance of nodes 0 and 1 is -1");
	check_bad(0, 2, INFINITY, INFINITY, "the distance of nodes 0 and 2 is inf");
	check_bad(1, 2, 1, 2, "the distance of nodes 1 and 2 is 1 one way and 2 the other");
	check_bad(1, 2, 1, NAN, "the distance of nodes 1 and 2 is 1 one way and nan the other");
	check_bad(1, 1, 3, 3, "the distance of node 1 to itself is 3, not 0");
	check_bad(1, 1, NAN, NAN, "the distance of node 1 to itself is nan, not 0");
	CHECK(matrix_check(&(struct matrix){0}, &err) == ESP_EINVAL);
}

static void test_select(void)
{
	struct matrix matrix = make(4), some;
	struct error err;

	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, 10 * i + j);
	}
	CHECK(matrix_select(&matrix, (uint32_t[]){3, 1}, 2, &some, &err) == ESP_OK);
	CHECK(some.size == 2 && matrix_get(&some, 0, 1) == 31 && matrix_get(&some, 1, 0) == 31 &&
	      matrix_get(&some, 0, 0) == 0);
	matrix_fini(&some);
	CHECK(matrix_select(&matrix, (uint32_t[]){3, 4}, 2, &some, &err) == ESP_EINVAL);
	CHECK(matrix_select(&matrix, NULL, 0, &some, &err) == ESP_ELIMIT);
	matrix_fini(&matrix);
}

int main(void)
{
	test_init();
	test_symmetrise();
	test_check();
	test_select();
	return 0;
}
