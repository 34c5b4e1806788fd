#include <math.h>
#include <stdlib.h>

#include "network/discover/judge_parts.h"

#define SOME 0.3     /* of the hosts of a group */
#define CLEARLY 0.35 /* of the logarithm of the usual ratio of far to near */

/* The hosts by group, so that two groups can be compared without visiting all others. */
struct members {
	const struct matrix *matrix;
	const struct grouping *grouping;
	uint32_t *order;
	uint32_t *first; /* by group, and one more: begin of its hosts in order */
	double *values;  /* all pairs, both ways */
};

static void members_fini(struct members *members)
{
	free(members->order);
	free(members->first);
	free(members->values);
}

static enum esp_status members_init(struct members *members, const struct matrix *matrix,
                                    const struct grouping *grouping, struct error *err)
{
	uint32_t count = 0;

	*members = (struct members){.matrix = matrix, .grouping = grouping};
	members->order = calloc(matrix->size, sizeof(*members->order));
	members->first = calloc((size_t)grouping->count + 1, sizeof(*members->first));
	members->values = calloc((size_t)matrix->size * matrix->size, sizeof(*members->values));
	if (!members->order || !members->first || !members->values)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", matrix->size);
	for (uint32_t g = 0; g < grouping->count; g++) {
		for (uint32_t i = 0; i < matrix->size; i++)
			if (grouping->group_of[i] == g)
				members->order[count++] = i;
		members->first[g + 1] = count;
	}
	return ESP_OK;
}

/*
 * A quantile of the distances between two groups, or within one; UINT32_MAX stands for all groups. share: how
 * many are smaller; NAN: none is known.
 */
static double distance_between(const struct members *members, uint32_t a, uint32_t b, bool across, double share)
{
	const uint32_t *group_of = members->grouping->group_of, *first = members->first;
	uint32_t a_begin = a == UINT32_MAX ? 0 : first[a], a_end = a == UINT32_MAX ? members->matrix->size : first[a + 1];
	uint32_t b_begin = b == UINT32_MAX ? 0 : first[b], b_end = b == UINT32_MAX ? members->matrix->size : first[b + 1];
	uint32_t count = 0;

	for (uint32_t x = a_begin; x < a_end; x++)
		for (uint32_t y = b_begin; y < b_end; y++) {
			uint32_t i = members->order[x], j = members->order[y];
			if (i != j && (group_of[i] != group_of[j]) == across && isfinite(matrix_get(members->matrix, i, j)))
				members->values[count++] = matrix_get(members->matrix, i, j);
		}
	return discover_quantile(members->values, count, share);
}

/* True if b is further than a by a good part of the usual ratio of far to near. NAN: true, nothing contradicts it. */
static bool is_further(double a, double b, double usual)
{
	return isnan(a) || isnan(b) || isnan(usual) || log(b / a) >= CLEARLY * log(usual);
}

/*
 * Disturbance never makes a pair look nearer: a host that is as near to some hosts of another group as hosts of
 * one group are to each other belongs there, however far the others seem to be. `SOME`: more than one pair, or
 * two of many.
 */
static bool is_host_apart(const struct members *members, uint32_t host, double within, double usual)
{
	const uint32_t *first = members->first, own = members->grouping->group_of[host];

	for (uint32_t g = 0; g < members->grouping->count; g++) {
		uint32_t count = 0;
		for (uint32_t x = first[g]; g != own && x < first[g + 1]; x++) {
			double each = matrix_get(members->matrix, host, members->order[x]);
			if (isfinite(each))
				members->values[count++] = each;
		}
		if (!is_further(within, discover_quantile(members->values, count, SOME), usual))
			return false;
	}
	return true;
}

/*
 * True if every group is clearly separated from every other, nearer to itself than to others, and is one group,
 * not two. A host with a slower link is a little further from its neighbours than they are from each other,
 * however exactly that is measured; hosts that are far from all others are no group; and next to very long
 * distances two groups that are near each other may look like one.
 */
enum esp_status discover_are_apart(const struct matrix *matrix, const struct grouping *grouping, bool *out,
                                   struct error *err)
{
	const uint32_t all = UINT32_MAX;
	struct members members;
	enum esp_status status = members_init(&members, matrix, grouping, err);

	if (status == ESP_OK) {
		double within = distance_between(&members, all, all, false, 0.5),
		    usual = distance_between(&members, all, all, true, 0.5) / within;
		*out = true;
		for (uint32_t a = 0; a < grouping->count && *out; a++) {
			double near = distance_between(&members, a, a, false, 0.2),
			    far = distance_between(&members, a, a, false, 0.6);
			*out = is_further(distance_between(&members, a, a, false, 0.5),
			                  distance_between(&members, a, all, true, 0.5), usual);
			*out = *out && (isnan(near) || !is_further(near, far, usual));
			for (uint32_t b = 0; b < a && *out; b++)
				*out = is_further(within, distance_between(&members, a, b, true, 0.5), usual);
		}
	}
	members_fini(&members);
	return status;
}

enum esp_status discover_hosts_are_apart(const struct matrix *matrix, const struct grouping *grouping, bool *out,
                                         struct error *err)
{
	const uint32_t all = UINT32_MAX;
	struct members members;
	enum esp_status status = members_init(&members, matrix, grouping, err);

	*out = true;
	if (status == ESP_OK) {
		double within = distance_between(&members, all, all, false, 0.5),
		    usual = distance_between(&members, all, all, true, 0.5) / within;
		for (uint32_t i = 0; i < matrix->size && *out; i++)
			*out = is_host_apart(&members, i, within, usual);
	}
	members_fini(&members);
	return status;
}

/* True if a host is alone in its group. By bandwidth that cannot be told from a host with a slower link. */
bool discover_has_lonely(const struct grouping *grouping)
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
