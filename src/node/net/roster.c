#include "node/net/roster.h"

#include <stdlib.h>
#include <string.h>

#include "node/net/interface.h"

void roster_fini(struct roster *roster)
{
	free(roster->nodes);
	free(roster->host_of);
	free(roster->host_ranks);
	free(roster->core_ranks);
	free(roster->core_place);
	*roster = (struct roster){0};
}

/* Orders ranks by host id, then by rank. */
static int compare_hosts(const void *a, const void *b, void *context)
{
	const struct node_info *nodes = ((const struct roster *)context)->nodes;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	int order = memcmp(nodes[one].host_id, nodes[other].host_id, NODE_INFO_HOST_ID_BYTES);
	return order ? order : (one > other) - (one < other);
}

/* Returns all ranks in order; sorting takes O(n log n), which matters for thousands. NULL: no memory. */
static uint32_t *sort_ranks(struct roster *roster, int (*compare)(const void *, const void *, void *))
{
	uint32_t *sorted = calloc(roster->size, sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < roster->size; i++)
		sorted[i] = i;
	if (sorted)
		qsort_r(sorted, roster->size, sizeof(*sorted), compare, roster);
	return sorted;
}

static bool number_hosts(struct roster *roster)
{
	uint32_t size = roster->size, first = 0;
	uint32_t *sorted = sort_ranks(roster, compare_hosts);
	roster->host_of = calloc(size, sizeof(*roster->host_of));
	roster->host_ranks = calloc(size, sizeof(*roster->host_ranks));
	if (!sorted || !roster->host_of || !roster->host_ranks) {
		free(sorted);
		return false;
	}
	for (uint32_t i = 0; i < size; i++) { /* at first: the lowest rank of the host */
		if (i > 0 &&
		    memcmp(roster->nodes[sorted[i]].host_id, roster->nodes[first].host_id, NODE_INFO_HOST_ID_BYTES) == 0)
			roster->host_of[sorted[i]] = first;
		else
			roster->host_of[sorted[i]] = first = sorted[i];
	}
	for (uint32_t i = 0; i < size; i++) {
		roster->host_of[i] = roster->host_of[i] == i ? roster->hosts++ : roster->host_of[roster->host_of[i]];
		roster->host_ranks[roster->host_of[i]]++;
	}
	free(sorted);
	return true;
}

/* Orders ranks by host, then by the set of cores that they may use, then by rank. */
static int compare_cores(const void *a, const void *b, void *context)
{
	const struct roster *roster = context;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	uint64_t set = roster->nodes[one].core_set, other_set = roster->nodes[other].core_set;

	if (roster->host_of[one] != roster->host_of[other])
		return roster->host_of[one] < roster->host_of[other] ? -1 : 1;
	return set != other_set ? (set > other_set) - (set < other_set) : (one > other) - (one < other);
}

/* Counts the ranks of a host that may use the same cores. Hosts must have their numbers. */
static bool number_cores(struct roster *roster)
{
	uint32_t size = roster->size, end;
	uint32_t *sorted = sort_ranks(roster, compare_cores);
	roster->core_ranks = calloc(size, sizeof(*roster->core_ranks));
	roster->core_place = calloc(size, sizeof(*roster->core_place));
	if (!sorted || !roster->core_ranks || !roster->core_place) {
		free(sorted);
		return false;
	}
	for (uint32_t first = 0; first < size; first = end) {
		uint32_t rank = sorted[first];

		for (end = first; end < size && roster->host_of[sorted[end]] == roster->host_of[rank] &&
		                  roster->nodes[sorted[end]].core_set == roster->nodes[rank].core_set; end++)
			roster->core_place[sorted[end]] = end - first;
		for (uint32_t i = first; i < end; i++)
			roster->core_ranks[sorted[i]] = end - first;
	}
	free(sorted);
	return true;
}

enum esp_status roster_init(struct roster *roster, struct node_info *nodes, uint32_t size, struct error *err)
{
	*roster = (struct roster){.size = size, .nodes = nodes};
	if (number_hosts(roster) && number_cores(roster))
		return ESP_OK;
	roster_fini(roster);
	return error_set(err, ESP_ENOMEM, "no memory for the node infos of %u ranks", size);
}

static bool is_on_loopback_only(const struct node_info *info)
{
	bool all = info->address_count > 0;
	for (uint32_t i = 0; i < info->address_count; i++)
		all = all && node_address_is_loopback(&info->addresses[i]);
	return all;
}

enum esp_status roster_check_reach(const struct roster *roster, int32_t *out_culprit, struct error *err)
{
	for (uint32_t i = 0; i < roster->size && roster->hosts > 1; i++) {
		const struct node_info *info = &roster->nodes[i];
		char address[NODE_ADDRESS_TEXT];
		if (!is_on_loopback_only(info))
			continue;
		*out_culprit = (int32_t)i;
		return error_set(err, ESP_EINVAL, "rank %u on %.60s can be reached at %s only, which is loopback, and there "
		                                  "are other hosts: the settings family and interfaces (ESP_FAMILY, "
		                                  "ESP_INTERFACES) leave it no other address", i, info->host_name,
		                 node_address_text(&info->addresses[0], address));
	}
	return ESP_OK;
}
