#include "network/discover/clean.h"

#include <math.h>
#include <stdlib.h>

#include "network/discover/median.h"

#define ROUNDS 20         /* of medians; they converge in a few */
#define FENCE 1.5         /* interquartile ranges: Tukey's fence */
#define THRESHOLD 6.0     /* usual deviations of a suspect */
#define SHARE_LEAST 0.05  /* and relative to its distance */
#define NORMAL 1.4826     /* standard deviation of normal noise per unit of its median */

static size_t gather_row(const struct matrix *matrix, uint32_t i, const double *own, double *out)
{
	size_t count = 0;

	for (uint32_t j = 0; j < matrix->size; j++) {
		double value = matrix_get(matrix, i, j);

		if (j != i && !isnan(value))
			out[count++] = value - own[j];
	}
	return count;
}

/* Alternating medians of the rows, as in Tukey's median polish; half a step each time, as all rows move at once. */
enum esp_status discover_clean_own(const struct matrix *matrix, double *out_own, struct error *err)
{
	double *next = calloc(matrix->size, sizeof(*next)), *row = calloc(matrix->size, sizeof(*row));

	if (!next || !row) {
		free(next);
		free(row);
		return error_set(err, ESP_ENOMEM, "no memory for the medians of %u nodes", matrix->size);
	}
	for (uint32_t i = 0; i < matrix->size; i++)
		out_own[i] = 0;
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < matrix->size; i++) {
			size_t count = gather_row(matrix, i, out_own, row);

			next[i] = count > 0 ? (median(row, count) + out_own[i]) / 2 : 0;
		}
		for (uint32_t i = 0; i < matrix->size; i++)
			out_own[i] = next[i];
	}
	free(next);
	free(row);
	return ESP_OK;
}

/* All known distances without the own parts; *out_count: their number. NULL: no memory. */
static double *gather_residuals(const struct matrix *matrix, const double *own, size_t *out_count)
{
	double *rest = calloc((size_t)matrix->size * matrix->size / 2 + 1, sizeof(*rest));
	size_t count = 0;

	for (uint32_t i = 0; rest && i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double value = matrix_get(matrix, i, j);

			if (!isnan(value))
				rest[count++] = value - own[i] - own[j];
		}
	}
	*out_count = count;
	return rest;
}

static uint64_t clip_rows(struct matrix *matrix, const double *own, double fence)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (matrix_get(matrix, i, j) - own[i] - own[j] > fence) { /* false for NAN */
				matrix_set(matrix, i, j, fmax(fence + own[i] + own[j], 0));
				count++;
			}
		}
	}
	return count;
}

enum esp_status discover_clean_fence(struct matrix *matrix, uint64_t *out_count, struct error *err)
{
	double *own = calloc(matrix->size, sizeof(*own)), *rest = NULL;
	enum esp_status status = own ? discover_clean_own(matrix, own, err) : ESP_ENOMEM;
	size_t known = 0;
	uint64_t count = 0;

	if (status == ESP_OK) {
		rest = gather_residuals(matrix, own, &known);
		status = rest ? ESP_OK : ESP_ENOMEM;
	}
	if (status == ESP_OK && known > 0) {
		double low = discover_median_nth(rest, known, known / 4),
			   high = discover_median_nth(rest, known, known - 1 - known / 4);

		/* If most distances are equal, the usual spread is unknown. */
		if (high > low)
			count = clip_rows(matrix, own, high + FENCE * (high - low));
	}
	free(own);
	free(rest);
	if (status != ESP_OK)
		return error_set(err, status, "no memory for the distances of %u nodes", matrix->size);
	if (out_count)
		*out_count = count;
	return ESP_OK;
}

/* ---- suspects ---- */

static int compare_suspects(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;

	if (x->excess != y->excess)
		return x->excess > y->excess ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

/* The usual deviation from the model; *all has room for all pairs. */
static double usual_deviation(const struct matrix *matrix, const struct matrix *model, double *all)
{
	size_t count = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double off = fabs(matrix_get(matrix, i, j) - matrix_get(model, i, j));

			if (!isnan(off))
				all[count++] = off;
		}
	}
	return count > 0 ? NORMAL * median(all, count) : 0;
}

enum esp_status discover_clean_suspects(const struct matrix *matrix, const struct matrix *model, double threshold,
                                        struct suspect *out, uint32_t room, uint32_t *out_count, struct error *err)
{
	if (matrix->size != model->size)
		return error_set(err, ESP_EINVAL, "distances of %u nodes and a model of %u", matrix->size, model->size);
	size_t pairs = (size_t)matrix->size * (matrix->size - 1) / 2;
	double *all = calloc(pairs + 1, sizeof(*all));
	struct suspect *found = calloc(pairs + 1, sizeof(*found));
	uint32_t count = 0;

	if (!all || !found) {
		free(all);
		free(found);
		return error_set(err, ESP_ENOMEM, "no memory for the distances of %u nodes", matrix->size);
	}
	double usual = usual_deviation(matrix, model, all);
	for (uint32_t b = 0; b < matrix->size; b++) {
		for (uint32_t a = 0; a < b; a++) {
			struct suspect one = {.a = a, .b = b, .expected = matrix_get(model, a, b),
			                      .measured = matrix_get(matrix, a, b)};
			double off = fabs(one.measured - one.expected);

			one.excess = isnan(one.measured) || usual == 0 ? INFINITY : off / usual;
			if (isnan(one.measured) ||
			    (one.excess > (threshold > 0 ? threshold : THRESHOLD) &&
			     off > SHARE_LEAST * fmax(one.expected, one.measured)))
				found[count++] = one;
		}
	}
	qsort(found, count, sizeof(*found), compare_suspects);
	*out_count = count < room ? count : room;
	for (uint32_t i = 0; i < *out_count; i++)
		out[i] = found[i];
	free(all);
	free(found);
	return ESP_OK;
}
