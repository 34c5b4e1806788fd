#include <math.h>
#include <stdlib.h>

#include "network/discover/judge_parts.h"
#include "network/discover/median.h"

#define FAR 2.0      /* quartiles */
#define FAR_FROM_NEIGHBOUR 4.0
/*
 * of the largest distance: a host further than this from all others has no range left in which its distances
 * could differ
 */
#define HIDDEN 0.75
#define SCATTER 0.05 /* of the largest distance: if a host's distances scatter by more, its position is unknown */

double discover_quantile(double *values, uint32_t count, double share)
{
	if (count == 0)
		return NAN;
	return discover_median_nth(values, count, (size_t)(share * count));
}

/*
 * Disturbance makes a probe longer only: a queue full of other packets is a thousand times a latency, and a
 * flow may get a tenth of its share in its short time. It affects pairs across groups most, as they share
 * links. So distances are clipped to a multiple of the lower quartile, which is a distance within groups or an
 * undisturbed one across them; and to a multiple of the median distance between neighbours, as pairs within
 * groups may be few.
 *
 * A host that is further than that from all others has a link full of other packets, or is far away. Its
 * position shows in the differences of its distances, so it is first moved nearer by their common part. If they
 * differ by more than groups do, its distances become unknown: the rest would be noise, and clipped noise looks
 * like a host that is alone.
 */
struct clipping {
	const struct matrix *matrix;
	struct matrix *out;
	double most;     /* the largest distance */
	bool *hidden;    /* by host: too far from all others */
	double *values;  /* for medians: all pairs */
};

/* The known distances of a host to hosts that are not hidden, less base[] if it is not NULL. */
static uint32_t gather_row(const struct clipping *clipping, uint32_t host, const double *base, double *out)
{
	uint32_t count = 0;

	for (uint32_t j = 0; j < clipping->matrix->size; j++) {
		double each = matrix_get(clipping->matrix, host, j);
		if (j != host && !clipping->hidden[j] && isfinite(each))
			out[count++] = each - (base ? base[j] : 0);
	}
	return count;
}

static bool is_beyond(const struct clipping *clipping, uint32_t host)
{
	bool known = false;

	for (uint32_t j = 0; j < clipping->matrix->size; j++) {
		double each = matrix_get(clipping->matrix, host, j);
		if (j != host && each <= HIDDEN * clipping->most)
			return false;
		known = known || (j != host && isfinite(each));
	}
	return known;
}

/* By how much a hidden host is further than usual for its peers; NAN: its distances scatter too much to tell. */
static double shift_of(const struct clipping *clipping, uint32_t host, const double *usual)
{
	uint32_t count = gather_row(clipping, host, usual, clipping->values);
	double shift = discover_quantile(clipping->values, count, 0.5);

	for (uint32_t i = 0; i < count; i++)
		clipping->values[i] = fabs(clipping->values[i] - shift);
	return discover_quantile(clipping->values, count, 0.5) <= SCATTER * clipping->most ? shift : NAN;
}

static void bring_nearer(const struct clipping *clipping, double *usual, double *shifts)
{
	uint32_t n = clipping->matrix->size;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = gather_row(clipping, i, NULL, clipping->values);
		usual[i] = discover_quantile(clipping->values, count, 0.5);
	}
	for (uint32_t i = 0; i < n; i++)
		shifts[i] = clipping->hidden[i] ? shift_of(clipping, i, usual) : 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			double each = matrix_get(clipping->matrix, i, j) - shifts[i] - shifts[j];
			matrix_set(clipping->out, i, j, each > 0 || isnan(each) ? each : 0);
		}
}

/*
 * The median distance of hosts to the second nearest other one. Not to the nearest: one host with wrong answers
 * could be the nearest of all.
 */
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
	return discover_quantile(values, count, 0.5);
}

static void cut_off(const struct clipping *clipping)
{
	for (uint32_t i = 0; i < clipping->out->size; i++)
		for (uint32_t j = 0; j < i; j++)
			if (matrix_get(clipping->out, i, j) > clipping->most)
				matrix_set(clipping->out, i, j, clipping->most);
}

static void clip_all(struct clipping *clipping)
{
	const struct matrix *matrix = clipping->matrix;
	uint32_t n = matrix->size, known = 0, hidden = 0;
	double *usual = clipping->values + (size_t)n * n;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (isfinite(matrix_get(matrix, i, j)))
				clipping->values[known++] = matrix_get(matrix, i, j);
	clipping->most = FAR * discover_quantile(clipping->values, known, 0.25);
	clipping->most = fmin(clipping->most, FAR_FROM_NEIGHBOUR * usual_neighbour(matrix, clipping->values));
	for (uint32_t i = 0; i < n; i++)
		hidden += clipping->hidden[i] = is_beyond(clipping, i);
	if (hidden > 0 && 2 * hidden < n)
		bring_nearer(clipping, usual, usual + n);
	cut_off(clipping);
}

enum esp_status discover_clip(const struct matrix *matrix, struct matrix *out, struct error *err)
{
	uint32_t n = matrix->size;
	struct clipping clipping = {
		.matrix = matrix,
		.out = out,
		.hidden = calloc(n, sizeof(bool)),
		.values = calloc((size_t)n * (n + 2), sizeof(double)), /* all pairs, and two for each host */
	};
	enum esp_status status = ESP_ENOMEM;

	if (!clipping.hidden || !clipping.values)
		(void)error_set(err, status, "no memory for %u hosts", n);
	else if ((status = matrix_copy(out, matrix, err)) == ESP_OK)
		clip_all(&clipping);
	free(clipping.values);
	free(clipping.hidden);
	return status;
}
