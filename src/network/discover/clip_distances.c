#include <math.h>
#include <stdlib.h>

#include "network/discover/judge_parts.h"

#define FAR 2.0      /* quartiles */
#define FAR_FROM_NEIGHBOUR 4.0
#define HIDDEN 0.75  /* of that: a host that is further from all has no room left in which its distances could differ */
#define SCATTER 0.05 /* of what counts as the furthest: distances of a host that differ by more say nothing of where it is */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double probing_quantile(double *values, uint32_t count, double share)
{
	if (count == 0)
		return NAN;
	qsort(values, count, sizeof(*values), compare);
	return values[(uint32_t)(share * count)];
}

/*
 * What disturbs a probe only makes it look further: a queue that is full of others' packets is a thousand times a latency, and a flow
 * may get a tenth of its share in its short time. It does that to pairs across groups the most, as those share ways. So nothing counts as further
 * than so many times the lower quartile: that is a distance within groups, or one across them that nobody disturbed; nor than so many times what
 * a host is from its neighbour, in the median, as there may be few of those.
 *
 * A host that is further than that from everybody has its own link full of others' packets, or stands far away. Where it is shows in how its distances
 * differ; so it is brought nearer first, by what all of them have in common. If they differ by more than groups do, nothing is known of it: what is left would be
 * noise, and noise that is cut off looks like a host that stands alone.
 */
struct taming {
	const struct matrix *matrix;
	struct matrix *out;
	double most;     /* that counts           */
	bool *hidden;    /* by host               */
	double *values;  /* for medians: all pairs */
};

/* Of what is known of a host, as far as the others are not hidden themselves; of the given values less `base` if there are any. */
static uint32_t gather_row(const struct taming *taming, uint32_t host, const double *base, double *out)
{
	uint32_t count = 0;

	for (uint32_t j = 0; j < taming->matrix->size; j++) {
		double each = matrix_get(taming->matrix, host, j);
		if (j != host && !taming->hidden[j] && isfinite(each))
			out[count++] = each - (base ? base[j] : 0);
	}
	return count;
}

static bool is_beyond(const struct taming *taming, uint32_t host)
{
	bool known = false;

	for (uint32_t j = 0; j < taming->matrix->size; j++) {
		double each = matrix_get(taming->matrix, host, j);
		if (j != host && each <= HIDDEN * taming->most)
			return false;
		known = known || (j != host && isfinite(each));
	}
	return known;
}

/* How much further a hidden host is than is usual for those whom it was probed with; NAN: its distances differ too much to tell. */
static double shift_of(const struct taming *taming, uint32_t host, const double *usual)
{
	uint32_t count = gather_row(taming, host, usual, taming->values);
	double shift = probing_quantile(taming->values, count, 0.5);

	for (uint32_t i = 0; i < count; i++)
		taming->values[i] = fabs(taming->values[i] - shift);
	return probing_quantile(taming->values, count, 0.5) <= SCATTER * taming->most ? shift : NAN;
}

static void bring_nearer(const struct taming *taming, double *usual, double *shifts)
{
	uint32_t n = taming->matrix->size;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = gather_row(taming, i, NULL, taming->values);
		usual[i] = probing_quantile(taming->values, count, 0.5);
	}
	for (uint32_t i = 0; i < n; i++)
		shifts[i] = taming->hidden[i] ? shift_of(taming, i, usual) : 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			double each = matrix_get(taming->matrix, i, j) - shifts[i] - shifts[j];
			matrix_set(taming->out, i, j, each > 0 || isnan(each) ? each : 0);
		}
}

/* What hosts are from the second nearest other one, in the median. Not the nearest: one host that lies could be that of all. */
static double usual_neighbour(const struct matrix *matrix, double *values)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		double first = INFINITY, second = INFINITY;
		for (uint32_t j = 0; j < matrix->size; j++) {
			double each = matrix_get(matrix, i, j);
			if (j == i || !(each < second))
				continue;
			second = each < first ? first : each;
			first = fmin(first, each);
		}
		if (isfinite(second))
			values[count++] = second;
	}
	return probing_quantile(values, count, 0.5);
}

static void cut_off(const struct taming *taming)
{
	for (uint32_t i = 0; i < taming->out->size; i++)
		for (uint32_t j = 0; j < i; j++)
			if (matrix_get(taming->out, i, j) > taming->most)
				matrix_set(taming->out, i, j, taming->most);
}

static void tame(struct taming *taming)
{
	const struct matrix *matrix = taming->matrix;
	uint32_t n = matrix->size, known = 0, hidden = 0;
	double *usual = taming->values + (size_t)n * n;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (isfinite(matrix_get(matrix, i, j)))
				taming->values[known++] = matrix_get(matrix, i, j);
	taming->most = FAR * probing_quantile(taming->values, known, 0.25);
	taming->most = fmin(taming->most, FAR_FROM_NEIGHBOUR * usual_neighbour(matrix, taming->values));
	for (uint32_t i = 0; i < n; i++)
		hidden += taming->hidden[i] = is_beyond(taming, i);
	if (hidden > 0 && 2 * hidden < n)
		bring_nearer(taming, usual, usual + n);
	cut_off(taming);
}

enum esp_status probing_tame(const struct matrix *matrix, struct matrix *out, struct error *err)
{
	uint32_t n = matrix->size;
	struct taming taming = {
		.matrix = matrix,
		.out = out,
		.hidden = calloc(n, sizeof(bool)),
		.values = calloc((size_t)n * (n + 2), sizeof(double)), /* all pairs, and two for each host */
	};
	enum esp_status status = ESP_ENOMEM;

	if (!taming.hidden || !taming.values)
		(void)error_set(err, status, "no memory for %u hosts", n);
	else if ((status = matrix_copy(out, matrix, err)) == ESP_OK)
		tame(&taming);
	free(taming.values);
	free(taming.hidden);
	return status;
}
