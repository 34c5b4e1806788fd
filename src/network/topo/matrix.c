#include "network/topo/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum esp_status matrix_init(struct matrix *matrix, uint32_t size, struct error *err)
{
	if (size == 0 || size > MATRIX_SIZE_MAX) {
		(void)error_set(err, ESP_ELIMIT, "distances between %u nodes: there can be 1 to %u", size, MATRIX_SIZE_MAX);
		return ESP_ELIMIT;
	}
	double *at = malloc((size_t)size * size * sizeof(*at));
	if (!at) {
		(void)error_set(err, ESP_ENOMEM, "no memory for the distances of %u nodes", size);
		return ESP_ENOMEM;
	}
	for (size_t i = 0; i < (size_t)size * size; i++)
		at[i] = i % (size + 1) == 0 ? 0 : NAN;
	*matrix = (struct matrix){.size = size, .at = at};
	return ESP_OK;
}

enum esp_status matrix_copy(struct matrix *matrix, const struct matrix *from, struct error *err)
{
	enum esp_status status = matrix_init(matrix, from->size, err);

	if (status == ESP_OK)
		memcpy(matrix->at, from->at, (size_t)from->size * from->size * sizeof(*from->at));
	return status;
}

void matrix_fini(struct matrix *matrix)
{
	free(matrix->at);
	*matrix = (struct matrix){0};
}

static double join(double a, double b, enum matrix_joining joining)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	if (joining == MATRIX_MEAN)
		return a == b ? a : a / 2 + b / 2;
	return (a < b) == (joining == MATRIX_SMALLER) ? a : b;
}

void matrix_symmetrise(struct matrix *matrix, enum matrix_joining joining)
{
	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, join(matrix_get(matrix, i, j), matrix_get(matrix, j, i), joining));
		matrix_set(matrix, i, i, 0);
	}
}

enum esp_status matrix_check(const struct matrix *matrix, struct error *err)
{
	if (!matrix->at || matrix->size == 0 || matrix->size > MATRIX_SIZE_MAX)
		return error_set(err, ESP_EINVAL, "distances between %u nodes: there can be 1 to %u", matrix->size,
		                 MATRIX_SIZE_MAX);
	for (uint32_t i = 0; i < matrix->size; i++) {
		if (!(matrix_get(matrix, i, i) == 0))
			return error_set(err, ESP_EINVAL, "the distance of node %u to itself is %g, not 0", i,
			                 matrix_get(matrix, i, i));
		for (uint32_t j = 0; j < i; j++) {
			double value = matrix_get(matrix, i, j), back = matrix_get(matrix, j, i);

			if (isnan(value) != isnan(back) || value < back || value > back)
				return error_set(err, ESP_EINVAL, "the distance of nodes %u and %u is %g one way and %g the other", j,
				                 i, back, value);
			if (value < 0 || isinf(value))
				return error_set(err, ESP_EINVAL, "the distance of nodes %u and %u is %g", j, i, value);
		}
	}
	return ESP_OK;
}

uint64_t matrix_known(const struct matrix *matrix)
{
	uint64_t known = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++)
			known += !isnan(matrix_get(matrix, i, j));
	}
	return known;
}

enum esp_status matrix_select(const struct matrix *from, const uint32_t *nodes, uint32_t count, struct matrix *out,
                              struct error *err)
{
	for (uint32_t i = 0; i < count; i++) {
		if (nodes[i] >= from->size)
			return error_set(err, ESP_EINVAL, "node %u is not among the nodes 0 to %u", nodes[i], from->size - 1);
	}
	enum esp_status status = matrix_init(out, count, err);
	if (status != ESP_OK)
		return status;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < count; j++)
			out->at[(size_t)i * count + j] = i == j ? 0 : matrix_get(from, nodes[i], nodes[j]);
	}
	return ESP_OK;
}
