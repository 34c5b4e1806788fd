#include "network/topo/grouping.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum esp_status grouping_init(struct grouping *grouping, uint32_t nodes, struct error *err)
{
	uint32_t *group_of = calloc(nodes, sizeof(*group_of));

	if (!group_of)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", nodes);
	*grouping = (struct grouping){.nodes = nodes, .count = 1, .group_of = group_of};
	return ESP_OK;
}

struct labelled {
	uint32_t label, node;
};

static int compare_labelled(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;

	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Every node gets the lowest node of its label, then these are numbered in their order. */
static void number_groups(struct grouping *grouping, const struct labelled *sorted)
{
	uint32_t *of = grouping->group_of;
	uint32_t first = 0;

	for (uint32_t i = 0; i < grouping->nodes; i++) {
		if (i == 0 || sorted[i].label != sorted[i - 1].label)
			first = sorted[i].node;
		of[sorted[i].node] = first;
	}
	grouping->count = 0;
	for (uint32_t node = 0; node < grouping->nodes; node++)
		of[node] = of[node] == node ? grouping->count++ : of[of[node]];
}

enum esp_status grouping_from(struct grouping *grouping, const uint32_t *labels, uint32_t nodes, struct error *err)
{
	struct labelled *sorted = calloc(nodes, sizeof(*sorted));

	if (!sorted)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", nodes);
	for (uint32_t node = 0; node < nodes; node++)
		sorted[node] = (struct labelled){.label = labels[node], .node = node};
	qsort(sorted, nodes, sizeof(*sorted), compare_labelled);
	enum esp_status status = grouping_init(grouping, nodes, err);
	if (status == ESP_OK)
		number_groups(grouping, sorted);
	free(sorted);
	return status;
}

void grouping_fini(struct grouping *grouping)
{
	free(grouping->group_of);
	*grouping = (struct grouping){0};
}

enum esp_status grouping_random(struct grouping *grouping, uint32_t nodes, uint32_t count, uint64_t seed,
                                struct error *err)
{
	struct rng rng;
	uint32_t *labels = calloc(nodes, sizeof(*labels));

	if (count == 0 || count > nodes) {
		free(labels);
		return error_set(err, ESP_EINVAL, "%u nodes in %u groups: there can be 1 to %u", nodes, count, nodes);
	}
	if (!labels)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u nodes", nodes);
	rng_init(&rng, seed);
	for (uint32_t node = 0; node < nodes; node++) { /* an inside-out shuffle */
		uint32_t other = (uint32_t)rng_below(&rng, (uint64_t)node + 1);

		labels[node] = labels[other];
		labels[other] = node % count;
	}
	enum esp_status status = grouping_from(grouping, labels, nodes, err);
	free(labels);
	return status;
}

bool grouping_equal(const struct grouping *a, const struct grouping *b)
{
	return a->nodes == b->nodes && a->count == b->count &&
	       memcmp(a->group_of, b->group_of, a->nodes * sizeof(*a->group_of)) == 0;
}

void grouping_sizes(const struct grouping *grouping, uint32_t *out)
{
	memset(out, 0, grouping->count * sizeof(*out));
	for (uint32_t node = 0; node < grouping->nodes; node++)
		out[grouping->group_of[node]]++;
}

/* count^2 * variance = count * (sum of size^2) - nodes^2 */
uint64_t grouping_diversity(const struct grouping *grouping)
{
	uint64_t squares = 0;
	uint32_t *sizes = calloc(grouping->count, sizeof(*sizes));

	if (!sizes)
		return UINT64_MAX;
	grouping_sizes(grouping, sizes);
	for (uint32_t group = 0; group < grouping->count; group++)
		squares += (uint64_t)sizes[group] * sizes[group];
	free(sizes);
	return grouping->count * squares - (uint64_t)grouping->nodes * grouping->nodes;
}
