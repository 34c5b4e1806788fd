#include <math.h>
#include <stdlib.h>

#include "api/probing_parts.h"

#define CLEARLY 0.35 /* of the usual way from near to far, as logarithms */

/* Distances between two groups, or within one; with UINT32_MAX in place of a group, of all. So many of them are shorter; NAN: none is known. */
static double distance_between(const struct matrix *matrix, const uint32_t *group_of, uint32_t a, uint32_t b, bool across, double share,
                               double *values)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < matrix->size; j++) {
			bool asked = (a == UINT32_MAX || group_of[i] == a) && (b == UINT32_MAX || group_of[j] == b);
			if (i != j && asked && (group_of[i] != group_of[j]) == across && isfinite(matrix_get(matrix, i, j)))
				values[count++] = matrix_get(matrix, i, j);
		}
	return probing_quantile(values, count, share);
}

/* Is b so much further than a as is a good part of the usual way from near to far? Ratios count. NAN: nothing speaks against it. */
static bool is_further(double a, double b, double usual)
{
	return isnan(a) || isnan(b) || isnan(usual) || log(b / a) >= CLEARLY * log(usual);
}

/*
 * Is every group clearly apart from every other, nearer to itself than to others, and one group and not two? A host with a slower link, say, is a little further
 * from its neighbours than they are from each other, however exactly that is measured; hosts that are far from all are no group; and where
 * something is very far, two groups that are near each other may look like one.
 */
enum esp_status probing_are_apart(const struct matrix *matrix, const struct grouping *grouping, bool *out, struct error *err)
{
	const uint32_t *group_of = grouping->group_of, all = UINT32_MAX;
	double *values = calloc((size_t)matrix->size * matrix->size, sizeof(*values));

	if (!values)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", matrix->size);
	double within = distance_between(matrix, group_of, all, all, false, 0.5, values);
	double usual = distance_between(matrix, group_of, all, all, true, 0.5, values) / within;
	*out = true;
	for (uint32_t a = 0; a < grouping->count && *out; a++) {
		double near = distance_between(matrix, group_of, a, a, false, 0.2, values), far = distance_between(matrix, group_of, a, a, false, 0.6, values);
		*out = is_further(distance_between(matrix, group_of, a, a, false, 0.5, values),
		                  distance_between(matrix, group_of, a, all, true, 0.5, values), usual);
		*out = *out && (isnan(near) || !is_further(near, far, usual));
		for (uint32_t b = 0; b < a && *out; b++)
			*out = is_further(within, distance_between(matrix, group_of, a, b, true, 0.5, values), usual);
	}
	free(values);
	return ESP_OK;
}

/* Does a host stand alone? By bandwidth that cannot be told from a host with a slower link. */
bool probing_has_lonely(const struct grouping *grouping)
{
	for (uint32_t i = 0; i < grouping->nodes; i++) {
		uint32_t mates = 0;
		for (uint32_t j = 0; j < grouping->nodes; j++)
			mates += j != i && grouping->group_of[j] == grouping->group_of[i];
		if (mates == 0)
			return true;
	}
	return false;
}
