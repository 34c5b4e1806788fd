#include "sim/share.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"

#define SLACK 1e-9     /* counts as equal, relative: far above rounding, far below visible differences */
#define SAME 1e-12     /* rates that differ by less are left as they are */
#define ROUNDS_MOST 32u /* then everything that is connected is taken in */

enum esp_status sim_share_init(struct share *share, uint32_t links, struct error *err)
{
	*share = (struct share){
		.links = calloc(links, sizeof(*share->links)),
		.link_count = links,
		.changed = calloc(links, sizeof(*share->changed)),
		.touched = calloc(links, sizeof(*share->touched)),
	};
	if (share->links && share->changed && share->touched)
		return ESP_OK;
	sim_share_fini(share);
	return error_set(err, ESP_ENOMEM, "no memory for %u links", links);
}

void sim_share_fini(struct share *share)
{
	for (uint32_t i = 0; share->links && i < share->link_count; i++)
		free(share->links[i].flows);
	free(share->links);
	free(share->changed);
	free(share->touched);
	free(share->flows);
	free(share->heap);
	*share = (struct share){0};
}

/* Room for one more item in an array. */
static bool has_room(struct share *share, void *array, uint32_t count, size_t *room, size_t bytes)
{
	if (vec_reserve(array, room, (size_t)count + 1, bytes))
		return true;
	share->failed = true;
	return false;
}

static void note_change(struct share *share, uint32_t link)
{
	if (share->links[link].changed)
		return;
	share->links[link].changed = true;
	share->changed[share->changed_count++] = link;
}

void sim_share_add(struct share *share, struct share_flow *flow)
{
	flow->rate = 0;
	flow->bottleneck = TOPOLOGY_NONE;
	flow->set = 0;
	for (uint32_t i = 0; i < flow->hops; i++) {
		struct share_link *link = &share->links[flow->link[i]];

		if (!has_room(share, &link->flows, link->count, &link->room, sizeof(*link->flows)))
			return;
		flow->at[i] = link->count;
		link->flows[link->count++] = (struct share_entry){flow, i};
		note_change(share, flow->link[i]);
	}
}

void sim_share_remove(struct share *share, struct share_flow *flow)
{
	for (uint32_t i = 0; i < flow->hops; i++) {
		struct share_link *link = &share->links[flow->link[i]];
		struct share_entry moved = link->flows[--link->count];

		link->flows[flow->at[i]] = moved;
		moved.flow->at[moved.hop] = flow->at[i];
		note_change(share, flow->link[i]);
	}
}

void sim_share_set_capacity(struct share *share, uint32_t link, double capacity)
{
	share->links[link].capacity = capacity;
	note_change(share, link);
}

/* ---- the set that is solved for ---- */

static void touch(struct share *share, uint32_t number)
{
	struct share_link *link = &share->links[number];

	if (link->set == share->set)
		return;
	link->set = share->set;
	share->touched[share->touched_count++] = number;
}

static bool is_in(const struct share *share, const struct share_flow *flow)
{
	return flow->set == share->set;
}

static void take_in(struct share *share, struct share_flow *flow)
{
	if (is_in(share, flow) ||
	    !has_room(share, &share->flows, share->flow_count, &share->flow_room, sizeof(struct share_flow *)))
		return;
	flow->set = share->set;
	flow->before = flow->rate;
	share->flows[share->flow_count++] = flow;
	for (uint32_t i = 0; i < flow->hops; i++)
		touch(share, flow->link[i]);
}

static void take_in_all(struct share *share, const struct share_link *link)
{
	for (uint32_t i = 0; i < link->count; i++)
		take_in(share, link->flows[i].flow);
}

static void begin(struct share *share)
{
	share->set++;
	share->flow_count = 0;
	share->touched_count = 0;
	for (uint32_t i = 0; i < share->changed_count; i++) {
		struct share_link *link = &share->links[share->changed[i]];

		link->changed = false;
		touch(share, share->changed[i]);
		for (uint32_t k = 0; k < link->count; k++) {
			struct share_flow *flow = link->flows[k].flow;

			if (flow->bottleneck == TOPOLOGY_NONE || flow->bottleneck == share->changed[i])
				take_in(share, flow);
		}
	}
	share->changed_count = 0;
}

/* ---- filling ---- */

static void heap_push(struct share *share, struct share_slot slot)
{
	if (!has_room(share, &share->heap, share->heap_count, &share->heap_room, sizeof(slot)))
		return;
	uint32_t at = share->heap_count++;
	for (; at > 0 && slot.least < share->heap[(at - 1) / 2].least; at = (at - 1) / 2)
		share->heap[at] = share->heap[(at - 1) / 2];
	share->heap[at] = slot;
}

static struct share_slot heap_pop(struct share *share)
{
	struct share_slot *heap = share->heap, first = heap[0], moved = heap[--share->heap_count];
	uint32_t at = 0, count = share->heap_count;

	for (uint32_t child; (child = at * 2 + 1) < count; at = child) {
		if (child + 1 < count && heap[child + 1].least < heap[child].least)
			child++;
		if (moved.least <= heap[child].least)
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
	return first;
}

/* The rate that a touched link has for the flows of the set, the others left as they are. Returns the share of each. */
static double prepare_link(struct share *share, struct share_link *link)
{
	link->open = 0;
	link->left = link->capacity;
	for (uint32_t i = 0; i < link->count; i++) {
		if (is_in(share, link->flows[i].flow))
			link->open++;
		else
			link->left -= link->flows[i].flow->rate;
	}
	share->flows_seen += link->count;
	link->inside = link->open;
	if (link->left < 0)
		link->left = 0;
	return link->open > 0 ? link->left / link->open : INFINITY;
}

static void freeze(struct share *share, struct share_flow *flow, uint32_t bottleneck, double rate)
{
	flow->frozen = true;
	flow->rate = rate;
	flow->bottleneck = bottleneck;
	for (uint32_t i = 0; i < flow->hops; i++) {
		struct share_link *link = &share->links[flow->link[i]];

		link->open--;
		link->left = link->left > rate ? link->left - rate : 0;
	}
}

static void freeze_all(struct share *share, uint32_t number, double rate)
{
	const struct share_link *link = &share->links[number];

	for (uint32_t i = 0; i < link->count; i++) {
		struct share_flow *flow = link->flows[i].flow;

		if (is_in(share, flow) && !flow->frozen)
			freeze(share, flow, number, rate);
	}
}

/* Where all links are alike, all have as little: that needs no heap. Flows that have more are left for it. */
static void fill_first(struct share *share)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < share->flow_count; i++)
		share->flows[i]->frozen = false;
	for (uint32_t i = 0; i < share->touched_count; i++) {
		double each = prepare_link(share, &share->links[share->touched[i]]);

		least = each < least ? each : least;
	}
	for (uint32_t i = 0; i < share->touched_count; i++) {
		const struct share_link *link = &share->links[share->touched[i]];

		if (link->open > 0 && link->left <= link->open * least * (1 + SAME))
			freeze_all(share, share->touched[i], least);
	}
}

static void fill(struct share *share)
{
	fill_first(share);
	share->heap_count = 0;
	for (uint32_t i = 0; i < share->touched_count; i++) {
		const struct share_link *link = &share->links[share->touched[i]];

		if (link->open > 0)
			heap_push(share, (struct share_slot){link->left / link->open, share->touched[i]});
	}
	while (share->heap_count > 0) {
		struct share_slot slot = heap_pop(share);
		const struct share_link *link = &share->links[slot.link];

		if (link->open == 0)
			continue;
		/* Since it was put there, flows have got their rates from other links; there may be more for the rest. */
		double least = link->left / link->open;
		if (share->heap_count > 0 && least > share->heap[0].least)
			heap_push(share, (struct share_slot){least, slot.link});
		else
			freeze_all(share, slot.link, least);
	}
}

/* ---- does every flow have a bottleneck? ---- */

static void review_link(struct share *share, uint32_t number)
{
	struct share_link *link = &share->links[number];
	double total = 0, most = 0, least_here = -1; /* of the set's flows that have their bottleneck here */

	if (link->inside == link->count)
		return; /* no flow was left as it was */
	for (uint32_t i = 0; i < link->count; i++) {
		const struct share_flow *flow = link->flows[i].flow;

		total += flow->rate;
		if (flow->rate > most)
			most = flow->rate;
		if (is_in(share, flow) && flow->bottleneck == number && (least_here < 0 || flow->rate < least_here))
			least_here = flow->rate;
	}
	if (total > link->capacity * (1 + SLACK)) {
		take_in_all(share, link);
		return;
	}
	bool is_full = total >= link->capacity * (1 - SLACK);
	for (uint32_t i = 0; i < link->count; i++) {
		struct share_flow *flow = link->flows[i].flow;

		if (is_in(share, flow))
			continue;
		bool has_lost = flow->bottleneck == number && (!is_full || flow->rate < most * (1 - SLACK));
		bool has_too_much = least_here >= 0 && flow->rate > least_here * (1 + SLACK);
		if (has_lost || has_too_much)
			take_in(share, flow);
	}
}

/* False: flows had to be taken in. */
static bool review(struct share *share)
{
	uint32_t flows = share->flow_count, touched = share->touched_count;

	for (uint32_t i = 0; i < touched; i++)
		review_link(share, share->touched[i]);
	return share->flow_count == flows;
}

static void take_in_connected(struct share *share)
{
	for (uint32_t i = 0; i < share->touched_count; i++) /* grows as it goes */
		take_in_all(share, &share->links[share->touched[i]]);
}

void sim_share_solve(struct share *share, void (*changed)(void *user, struct share_flow *flow, double before),
                     void *user)
{
	begin(share);
	fill(share);
	for (uint32_t rounds = 1; !review(share) && !share->failed; rounds++) {
		if (rounds == ROUNDS_MOST)
			take_in_connected(share);
		fill(share);
	}
	for (uint32_t i = 0; i < share->flow_count; i++) {
		struct share_flow *flow = share->flows[i];
		double difference = flow->rate - flow->before;

		if (difference <= flow->before * SAME && -difference <= flow->before * SAME)
			flow->rate = flow->before;
		else
			changed(user, flow, flow->before);
	}
}
