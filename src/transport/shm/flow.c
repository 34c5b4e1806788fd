#include "transport/shm/flow.h"

#include <assert.h>
#include <stdlib.h>

#define BLOCK_PARCELS 63u /* allocated at a time: about 1.5 KiB */

struct parcel_block {
	struct parcel_block *next;
	struct parcel parcels[BLOCK_PARCELS];
};

/* ---- the table ---- */

struct flow *shm_flows_find(const struct flows *flows, uint16_t channel)
{
	const struct flow_page *page = flows->pages[channel / FLOW_PAGE];

	return page ? page->flows[channel % FLOW_PAGE] : NULL;
}

struct flow *shm_flows_get(struct flows *flows, uint16_t channel)
{
	struct flow_page **page = &flows->pages[channel / FLOW_PAGE];

	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (!*page)
		return NULL;
	struct flow **place = &(*page)->flows[channel % FLOW_PAGE];
	if (!*place)
		*place = calloc(1, sizeof(**place));
	if (*place)
		(*place)->channel = channel;
	return *place;
}

void shm_flows_remove(struct flows *flows, struct flow *flow)
{
	flows->pages[flow->channel / FLOW_PAGE]->flows[flow->channel % FLOW_PAGE] = NULL;
	flow->is_forgotten = true;
}

void shm_flow_drop_copies(struct flow *flow, uint32_t end)
{
	for (struct copy **at = &flow->copies; *at;) {
		struct copy *copy = *at;

		if (!flow_is_below(copy->index, end)) {
			at = &copy->next;
			continue;
		}
		*at = copy->next;
		free(copy);
	}
}

void shm_flow_free(struct flow *flow)
{
	assert(!flow->is_sending && !flow->is_receiving);
	if (flow->copies)
		shm_flow_drop_copies(flow, flow->offers_end);
	assert(!flow->copies);
	free(flow);
}

void shm_flows_fini(struct flows *flows)
{
	for (uint32_t i = 0; i < 65536 / FLOW_PAGE; i++) {
		for (uint32_t k = 0; flows->pages[i] && k < FLOW_PAGE; k++) {
			if (flows->pages[i]->flows[k])
				shm_flow_free(flows->pages[i]->flows[k]);
		}
		free(flows->pages[i]);
		flows->pages[i] = NULL;
	}
}

/* ---- the lists ---- */

void shm_flow_list_sending(struct flows *flows, struct flow *flow)
{
	if (flow->is_sending)
		return;
	flow->is_sending = true;
	flow->next_sending = flows->sending;
	flows->sending = flow;
}

void shm_flow_list_receiving(struct flows *flows, struct flow *flow)
{
	if (flow->is_receiving)
		return;
	flow->is_receiving = true;
	flow->next_receiving = flows->receiving;
	flows->receiving = flow;
}

void shm_flow_unlist_sending(struct flows *flows, struct flow *flow)
{
	struct flow **at = &flows->sending;

	if (!flow->is_sending)
		return;
	while (*at != flow)
		at = &(*at)->next_sending;
	*at = flow->next_sending;
	flow->is_sending = false;
}

void shm_flow_unlist_receiving(struct flows *flows, struct flow *flow)
{
	struct flow **at = &flows->receiving;

	if (!flow->is_receiving)
		return;
	while (*at != flow)
		at = &(*at)->next_receiving;
	*at = flow->next_receiving;
	flow->is_receiving = false;
}

/* ---- parcels ---- */

struct parcel *shm_parcels_get(struct parcels *parcels)
{
	if (!parcels->free) {
		struct parcel_block *block = malloc(sizeof(*block));

		if (!block)
			return NULL;
		block->next = parcels->blocks;
		parcels->blocks = block;
		for (uint32_t i = 0; i < BLOCK_PARCELS; i++)
			shm_parcels_put(parcels, &block->parcels[i]);
	}
	struct parcel *parcel = parcels->free;
	parcels->free = parcel->next;
	return parcel;
}

void shm_parcels_put(struct parcels *parcels, struct parcel *parcel)
{
	parcel->next = parcels->free;
	parcels->free = parcel;
}

void shm_parcels_fini(struct parcels *parcels)
{
	while (parcels->blocks) {
		struct parcel_block *block = parcels->blocks;

		parcels->blocks = block->next;
		free(block);
	}
	parcels->free = NULL;
}
