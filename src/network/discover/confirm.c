#include "network/discover/confirm.h"

#include <math.h>
#include <stdlib.h>

#include "network/discover/median.h"

#define NEIGHBOURS 4u
#define NEAREST 2u      /* so many are asked about a distance that is not known */
#define UNCONFIRMED 3.0 /* times what the neighbours have measured */
#define WITNESSES 3u    /* neighbours that must agree that it is less */
#define MUCH 6.0        /* times nearer */

/* The nearest hosts of each, NEIGHBOURS of them or fewer; UINT32_MAX: there is none. */
static void find_neighbours(const struct matrix *matrix, uint32_t host, uint32_t *out)
{
	const double *row = matrix->at + (size_t)host * matrix->size;
	uint32_t count = 0;

	for (uint32_t j = 0; j < matrix->size; j++) {
		if (j == host || isnan(row[j]) || (count == NEIGHBOURS && !(row[j] < row[out[count - 1]])))
			continue;
		uint32_t at = count < NEIGHBOURS ? count++ : count - 1;
		for (; at > 0 && row[j] < row[out[at - 1]]; at--)
			out[at] = out[at - 1];
		out[at] = j;
	}
	for (; count < NEIGHBOURS; count++)
		out[count] = UINT32_MAX;
}

/* The distances that neighbours of one end, within reach, measured to the other end. */
static size_t ask(const struct matrix *matrix, const uint32_t *near, uint32_t end, uint32_t other, double reach,
                  double *values)
{
	size_t count = 0;

	for (uint32_t k = 0; k < (isinf(reach) ? NEAREST : NEIGHBOURS); k++) {
		uint32_t each = near[(size_t)end * NEIGHBOURS + k];

		if (each != UINT32_MAX && each != other && matrix_get(matrix, each, end) <= reach &&
		    !isnan(matrix_get(matrix, each, other)))
			values[count++] = matrix_get(matrix, each, other);
	}
	return count;
}

/*
 * The distance that it should be; NAN: it is right, or no neighbour knows. A host that is much nearer to one end than
 * the other end is should be as far from that; about a distance that is not known the nearest are asked.
 */
static double expect(const struct matrix *matrix, const uint32_t *near, uint32_t i, uint32_t j)
{
	double distance = matrix_get(matrix, i, j), values[2 * NEIGHBOURS];
	double reach = isnan(distance) ? INFINITY : distance / MUCH;
	size_t count = ask(matrix, near, i, j, reach, values);

	count += ask(matrix, near, j, i, reach, values + count);
	for (size_t k = 0; k < count && !isnan(distance); k++)
		if (values[k] * UNCONFIRMED >= distance)
			return NAN;
	return count >= (isnan(distance) ? 1 : WITNESSES) ? median(values, count) : NAN;
}

static double mean_known(const struct matrix *matrix)
{
	double sum = 0;
	uint64_t known = 0;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!isnan(matrix_get(matrix, i, j))) {
				sum += matrix_get(matrix, i, j);
				known++;
			}
	return known > 0 ? sum / (double)known : NAN;
}

enum esp_status discover_confirm(const struct matrix *matrix, struct matrix *out, struct error *err)
{
	uint32_t n = matrix->size, *near = calloc((size_t)n * NEIGHBOURS, sizeof(*near));
	double usual = mean_known(matrix);
	enum esp_status status = near ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u hosts", n);

	if (status == ESP_OK && isnan(usual))
		status = error_set(err, ESP_EINVAL, "no distance between any two of the %u hosts is known", n);
	if (status == ESP_OK)
		status = matrix_copy(out, matrix, err);
	for (uint32_t i = 0; i < n && status == ESP_OK; i++)
		find_neighbours(matrix, i, near + (size_t)i * NEIGHBOURS);
	for (uint32_t i = 0; i < n && status == ESP_OK; i++)
		for (uint32_t j = 0; j < i; j++) {
			double expected = expect(matrix, near, i, j);

			if (!isnan(expected))
				matrix_set(out, i, j, expected);
			else if (isnan(matrix_get(matrix, i, j)))
				matrix_set(out, i, j, usual);
		}
	free(near);
	return status;
}
