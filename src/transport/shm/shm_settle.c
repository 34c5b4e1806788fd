/* shm_settle.c - the end of messages that we left: consumed by the peer, or taken back. */
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fence.h"
#include "transport/shm/shm_state.h"

/* ---- what the peer has consumed ---- */

/* A parcel that is in no list any more is done with; the user learns of it if its memory was on loan. */
static void parcel_done(struct shm *shm, const struct peer *peer, struct flow *flow, struct parcel *parcel)
{
	void *cookie = parcel->cookie;
	bool in_heap = parcel->slot == SLOT_NONE;

	if (!in_heap)
		shm_slots_put(&shm->slots, parcel->slot);
	shm_parcels_put(&shm->parcels, parcel);
	shm->moved++;
	if (in_heap) {
		flow->heap_count--;
		shm->user->sent(shm->context, peer->number, flow->channel, cookie);
	}
}

/* All parcels below end, or all; false: the user has failed over it. */
static bool release_parcels(struct shm *shm, const struct peer *peer, struct flow *flow, uint32_t end, bool all)
{
	struct parcel *before = NULL;

	for (struct parcel **at = &flow->first; *at;) {
		struct parcel *parcel = *at;

		if (!all && !flow_is_below(parcel->index, end)) {
			before = parcel;
			at = &parcel->next;
			continue;
		}
		*at = parcel->next;
		if (flow->last == parcel)
			flow->last = before;
		parcel_done(shm, peer, flow, parcel);
		if (shm_has_ended(shm))
			return false;
	}
	return true;
}

/*
 * The counter has a new value. ESP_PENDING: it is of an earlier use of the channel. One of a later use means
 * that the peer is through with this one, which only a channel that we have forgotten can see.
 */
static enum esp_status read_counter(const struct flow *flow, bool *out_all)
{
	uint32_t stamp = (uint32_t)(flow->seen >> 32), end = (uint32_t)flow->seen;

	*out_all = false;
	if (stamp == 0 || flow_is_below(stamp, flow->stamp))
		return ESP_PENDING;
	if (stamp == flow->stamp)
		return flow_is_below(flow->ahead, end) ? ESP_ECORRUPT : ESP_OK;
	*out_all = true;
	return flow->is_forgotten ? ESP_OK : ESP_ECORRUPT;
}

void shm_peer_settle(struct shm *shm, struct peer *peer)
{
	for (struct flow **at = &peer->flows.sending; *at;) {
		struct flow *flow = *at;
		/* All that the peer did before, reading our memory included, is over. */
		uint64_t value = atomic_load_explicit(flow->counter, memory_order_acquire);
		bool all;

		if (value == flow->seen) {
			at = &flow->next_sending;
			continue;
		}
		flow->seen = value;
		enum esp_status status = read_counter(flow, &all);
		if (status == ESP_ECORRUPT) {
			shm_peer_lose(shm, peer, status);
			return;
		}
		if (status == ESP_OK && !release_parcels(shm, peer, flow, (uint32_t)value, all))
			return;
		if (flow->first) {
			at = &flow->next_sending;
			continue;
		}
		*at = flow->next_sending;
		flow->is_sending = false;
		if (flow->is_forgotten)
			shm_flow_free(flow);
	}
}

bool shm_peer_has_consumed(const struct peer *peer)
{
	for (const struct flow *flow = peer->flows.sending; flow; flow = flow->next_sending) {
		if (atomic_load_explicit(flow->counter, memory_order_acquire) != flow->seen)
			return true;
	}
	return false;
}

/* ---- taking it back ---- */

#define REVOKED_WORDS (LAYOUT_CHANNELS / 64)

static void note_revoked(struct peer *peer, uint16_t channel)
{
	if (!peer->revoked)
		peer->revoked = calloc(REVOKED_WORDS, sizeof(*peer->revoked));
	if (peer->revoked)
		peer->revoked[channel / 64] |= UINT64_C(1) << channel % 64;
	else
		peer->lacks_revoked = true;
}

bool shm_peer_clear_marks(struct shm *shm, struct peer *peer)
{
	uint64_t consumed = layout_consumed(shm->layout, shm->lane, peer->local, 0);

	if (peer->lacks_revoked)
		return false;
	for (uint32_t i = 0; peer->revoked && i < LAYOUT_CHANNELS; i++) {
		if (!(peer->revoked[i / 64] & UINT64_C(1) << i % 64))
			continue;
		_Atomic uint32_t *word =
			segment_at(shm->segment, layout_revoked(shm->layout, shm->lane, peer->local, (uint16_t)i));

		atomic_store(word, 0);
		peer->revoked[i / 64] &= ~(UINT64_C(1) << i % 64);
	}
	return shm_segment_release(shm->segment, consumed, LAYOUT_CHANNELS * sizeof(uint64_t)) &&
	       shm_segment_reserve(shm->segment, consumed, sizeof(uint64_t));
}

static void revoke(struct shm *shm, struct peer *peer, uint16_t channel)
{
	note_revoked(peer, channel);
	_Atomic uint32_t *word = segment_at(shm->segment, layout_revoked(shm->layout, shm->lane, peer->local, channel));

	atomic_store(word, 1);
}

/* So long we wait for a peer that is storing: it may have lost its core, and is most likely through before. */
#define STORING_MOST (20 * NS_PER_MS)
#define STORING_LONG NS_PER_S

/* Is the store that the peer had begun when we revoked it still not complete? Later stores see that it is revoked. */
static bool is_storing(struct peer *peer, uint64_t most_ns)
{
	uint32_t before = atomic_load(peer->storing);

	if (before % 2 == 0)
		return false;
	uint64_t until = before == peer->stands_at && most_ns == STORING_MOST ? 0 : clock_now_ns() + most_ns;
	while (atomic_load(peer->storing) == before) {
		if (clock_now_ns() >= until) {
			peer->stands_at = before;
			return true;
		}
		sched_yield();
	}
	return false;
}

/* A peer that stands still while it stores may go on at any time: it shall not find the memory of our user then. */
static void withdraw(struct shm *shm, struct peer *peer, const struct flow *flow)
{
	for (const struct parcel *parcel = flow->first; parcel; parcel = parcel->next) {
		if (!parcel->reply)
			continue;
		if (shm_segment_withdraw(shm->segment, parcel->reply, parcel->bytes))
			shm->stats.withdrawn_bytes += parcel->bytes;
		else if (!is_storing(peer, STORING_LONG)) /* there is no memory for it: all that is left is to wait */
			return;
	}
}

/*
 * Revokes what was offered on the flow, for reading and for storing: the latter must have come to an end when this
 * returns.
 */
static void recall(struct shm *shm, struct peer *peer, const struct flow *flow)
{
	bool is_open = false;

	revoke(shm, peer, flow->channel);
	for (const struct parcel *parcel = flow->first; parcel && !is_open; parcel = parcel->next)
		is_open = parcel->reply;
	if (is_open && is_storing(peer, STORING_MOST))
		withdraw(shm, peer, flow);
}

void shm_peer_revoke_heap(struct shm *shm, struct peer *peer)
{
	for (const struct flow *flow = peer->flows.sending; flow; flow = flow->next_sending) {
		if (flow->heap_count > 0)
			recall(shm, peer, flow);
	}
}

/* Drops the messages in the heap, or all, without sent(). */
static void drop_parcels(struct shm *shm, struct flow *flow, bool all)
{
	struct parcel *parcel = flow->first;

	flow->first = flow->last = NULL;
	while (parcel) {
		struct parcel *next = parcel->next;

		if (!all && parcel->slot != SLOT_NONE) {
			parcel->next = NULL;
			if (flow->first)
				flow->last->next = parcel;
			else
				flow->first = parcel;
			flow->last = parcel;
		} else {
			if (parcel->slot != SLOT_NONE)
				shm_slots_put(&shm->slots, parcel->slot);
			shm_parcels_put(&shm->parcels, parcel);
		}
		parcel = next;
	}
	flow->heap_count = 0;
}

void shm_peer_take_back(struct shm *shm, struct peer *peer)
{
	for (const struct flow *flow = peer->flows.sending; flow; flow = flow->next_sending)
		recall(shm, peer, flow);
	if (peer->brief_slot != SLOT_NONE)
		revoke(shm, peer, peer->brief_channel);
	full_fence(); /* slots are written again from here on */
	shm_peer_release(shm, peer);
}

void shm_peer_release(struct shm *shm, struct peer *peer)
{
	struct flow *next;

	for (struct flow *flow = peer->flows.sending; flow; flow = next) {
		next = flow->next_sending;
		drop_parcels(shm, flow, true);
		flow->is_sending = false;
		if (flow->is_forgotten)
			shm_flow_free(flow);
	}
	peer->flows.sending = NULL;
	while (peer->flows.receiving)
		shm_flow_unlist_receiving(&peer->flows, peer->flows.receiving);
	shm_flows_fini(&peer->flows);
	if (peer->brief_slot != SLOT_NONE)
		shm_slots_put(&shm->slots, peer->brief_slot);
	peer->brief_slot = SLOT_NONE;
}

void shm_peer_forget_sent(struct shm *shm, struct peer *peer, struct flow *flow)
{
	if (flow->heap_count > 0) {
		recall(shm, peer, flow);
		drop_parcels(shm, flow, false);
	}
	if (!flow->first)
		shm_flow_unlist_sending(&peer->flows, flow);
}
