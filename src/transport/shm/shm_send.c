/* shm_send.c - messages that we leave for others: pulled from the user, copied or offered. */
#include <assert.h>
#include <string.h>

#include "transport/shm/shm_state.h"

/* Messages to one peer in a turn, so that all get theirs. */
#define PULL_MOST 32u

/* ---- room ---- */

/* How many descriptors the peer has copied out: a number that cannot be ends it. */
static bool look_at_taken(struct shm *shm, struct peer *peer)
{
	uint32_t taken = atomic_load_explicit(peer->taken, memory_order_acquire);
	uint32_t more = taken - (uint32_t)peer->to_taken;

	if (more > peer->to_position - peer->to_taken) {
		shm_peer_lose(shm, peer, ESP_ECORRUPT);
		return false;
	}
	peer->to_taken += more;
	return true;
}

/* In the ring, whose last place is for RING_END. */
static bool has_room(struct shm *shm, struct peer *peer)
{
	if (peer->to_position - peer->to_taken < LAYOUT_RING - 1)
		return true;
	return look_at_taken(shm, peer) && peer->to_position - peer->to_taken < LAYOUT_RING - 1;
}

/*
 * Slots are held until messages are consumed, and those may wait for others that are yet to be
 * sent: if slots were to run out, they might wait for ever. So the last ones, one per peer, are
 * only lent: the peer copies what lies in them as soon as it looks.
 */
enum supply { SUPPLY_NONE, SUPPLY_BRIEF, SUPPLY_PLENTY };

static enum supply slots_for(struct shm *shm, const struct peer *peer)
{
	if (!shm_slots_available(&shm->slots))
		return SUPPLY_NONE;
	if (shm_slots_left(&shm->slots) >= shm->peer_count) /* the others' and this one */
		return SUPPLY_PLENTY;
	return peer->brief_slot == SLOT_NONE ? SUPPLY_BRIEF : SUPPLY_NONE;
}

void shm_peer_settle_brief(struct shm *shm, struct peer *peer)
{
	if (!look_at_taken(shm, peer) || peer->to_taken <= peer->brief_position)
		return;
	shm_slots_put(&shm->slots, peer->brief_slot);
	peer->brief_slot = SLOT_NONE;
	shm->moved++;
}

bool shm_peer_can_pull(struct shm *shm, struct peer *peer)
{
	return !peer->is_lost && (!peer->holds || slots_for(shm, peer) != SUPPLY_NONE) && has_room(shm, peer);
}

/* ---- messages ---- */

static void put_note(struct shm *shm, struct peer *peer, const struct ring_note *note)
{
	ring_put(peer->to, peer->to_position++, note);
	peer_tell(shm, peer, DOZE_NEWS);
}

void shm_peer_put_end(struct shm *shm, struct peer *peer)
{
	put_note(shm, peer, &(struct ring_note){.kind = RING_END});
}

static void put_credit(struct shm *shm, struct peer *peer, const struct transport_message *message)
{
	const struct flow *flow = shm_flows_find(&peer->flows, message->channel);

	put_note(shm, peer, &(struct ring_note){
		.kind = RING_CREDIT,
		.channel = message->channel,
		.stamp = flow ? flow->their_stamp : 0,
		.ack = message->ack,
	});
}

static uint32_t next_stamp(struct shm *shm)
{
	shm->stamps++;
	if (shm->stamps == 0) /* after four billion */
		shm->stamps = 1;
	return shm->stamps;
}

/* The flow of a message that is sent on it. */
static struct flow *flow_for(struct shm *shm, struct peer *peer, const struct transport_message *message)
{
	struct flow *flow = shm_flows_get(&peer->flows, message->channel);

	if (!flow)
		return NULL;
	if (flow->stamp == 0) {
		flow->stamp = next_stamp(shm);
		flow->ahead = message->index;
		flow->counter = view_at(peer->view, layout_consumed(shm->layout, shm->lane, shm->self, message->channel));
	}
	if (!flow_is_below(message->index, flow->ahead))
		flow->ahead = message->index + 1;
	return flow;
}

/* SLOT_NONE: none is free. */
static uint32_t copy_to_slot(struct shm *shm, const struct peer *peer, const struct transport_message *message,
                             enum supply *out_supply)
{
	uint32_t slot = shm_slots_find(&shm->slots, message->channel, message->content);

	*out_supply = slot != SLOT_NONE ? SUPPLY_PLENTY : slots_for(shm, peer);
	if (slot != SLOT_NONE || *out_supply == SUPPLY_NONE)
		return slot;
	slot = shm_slots_get(&shm->slots, message->channel, *out_supply == SUPPLY_BRIEF ? 0 : message->content,
	                     transport_shift(message->data, message->bytes));
	void *to = segment_at(shm->segment, slots_at(&shm->slots, slot));
	if (message->data)
		memcpy(to, message->data, message->bytes);
	else /* there is no memory behind it */
		memset(to, 0, message->bytes);
	shm->stats.copied_bytes += message->bytes;
	return slot;
}

static void add_parcel(struct peer *peer, struct flow *flow, struct parcel *parcel)
{
	parcel->next = NULL;
	if (flow->first)
		flow->last->next = parcel;
	else
		flow->first = parcel;
	flow->last = parcel;
	flow->heap_count += parcel->slot == SLOT_NONE;
	shm_flow_list_sending(&peer->flows, flow);
}

/* May the peer store its answer by itself? */
static bool is_open_for(const struct shm *shm, const struct peer *peer, const struct transport_message *message)
{
	return message->reply && peer->view->is_open && shm_segment_is_open(shm->segment) &&
	       shm_segment_owns(shm->segment, message->reply, message->bytes);
}

/* Remembers the message until the peer has consumed it; false: no memory. */
static bool remember(struct shm *shm, struct peer *peer, struct flow *flow, const struct transport_message *message,
                     uint32_t slot)
{
	struct parcel *parcel = shm_parcels_get(&shm->parcels);

	if (!parcel)
		return false;
	*parcel =
		(struct parcel){.cookie = message->cookie, .index = message->index, .slot = slot, .bytes = message->bytes};
	if (slot == SLOT_NONE && is_open_for(shm, peer, message))
		parcel->reply = message->reply;
	add_parcel(peer, flow, parcel);
	return true;
}

static enum esp_status place_in_heap(struct shm *shm, struct peer *peer, struct flow *flow,
                                     const struct transport_message *message, struct ring_note *note)
{
	if (!remember(shm, peer, flow, message, SLOT_NONE))
		return ESP_ENOMEM;
	note->kind = RING_HEAP;
	note->at = (uint64_t)((const uint8_t *)message->data - shm->segment->base);
	if (flow->last->reply) {
		note->kind = RING_OPEN;
		note->reply = (uint64_t)((const uint8_t *)flow->last->reply - shm->segment->base);
		atomic_store_explicit(&peer->to_replies[peer->to_position % LAYOUT_RING], note->reply, memory_order_relaxed);
	}
	shm->stats.offered_bytes += message->bytes;
	return ESP_OK;
}

/* ESP_PENDING: there is no slot for it. */
static enum esp_status place_in_slot(struct shm *shm, struct peer *peer, struct flow *flow,
                                     const struct transport_message *message, struct ring_note *note)
{
	enum supply supply;
	uint32_t slot = copy_to_slot(shm, peer, message, &supply);

	if (slot == SLOT_NONE)
		return ESP_PENDING;
	note->at = slots_at(&shm->slots, slot);
	if (supply == SUPPLY_BRIEF) {
		note->kind = RING_BRIEF;
		peer->brief_slot = slot;
		peer->brief_channel = message->channel;
		peer->brief_position = peer->to_position;
		return ESP_OK;
	}
	note->kind = RING_SLOT;
	if (remember(shm, peer, flow, message, slot))
		return ESP_OK;
	shm_slots_put(&shm->slots, slot);
	return ESP_ENOMEM;
}

/* ESP_PENDING: there is no slot for it; ESP_ENOMEM: it is gone. */
static enum esp_status put_data(struct shm *shm, struct peer *peer, const struct transport_message *message)
{
	struct flow *flow = flow_for(shm, peer, message);

	if (!flow)
		return ESP_ENOMEM;
	struct ring_note note = {
		.kind = RING_EMPTY,
		.channel = message->channel,
		.stamp = flow->stamp,
		.index = message->index,
		.ack = message->ack,
		.call = message->call,
		.bytes = message->bytes,
	};
	assert(message->bytes <= shm->segment->config.slot_bytes);
	enum esp_status status = ESP_OK;
	if (message->is_stored)
		note.kind = RING_STORED;
	else if (message->bytes > 0 && shm_segment_owns(shm->segment, message->data, message->bytes))
		status = place_in_heap(shm, peer, flow, message, &note);
	else if (message->bytes > 0)
		status = place_in_slot(shm, peer, flow, message, &note);
	if (status != ESP_OK)
		return status;
	put_note(shm, peer, &note);
	shm->stats.messages_sent++;
	shm->stats.sent_bytes += message->bytes;
	shm->stats.stored_bytes += message->is_stored ? message->bytes : 0;
	if (!ring_is_lent(note.kind)) /* the user may have its memory back */
		shm->user->sent(shm->context, peer->number, message->channel, message->cookie);
	return ESP_OK;
}

/* The message that was held back, or the next one; false: there is none. */
static bool next_message(struct shm *shm, struct peer *peer, struct transport_message *out)
{
	if (peer->holds) {
		peer->holds = false;
		*out = peer->held;
		return true;
	}
	*out = (struct transport_message){0};
	peer->wants = shm->user->next(shm->context, peer->number, out);
	return peer->wants;
}

void shm_peer_pull(struct shm *shm, struct peer *peer)
{
	for (uint32_t i = 0; i < PULL_MOST && shm_peer_can_pull(shm, peer); i++) {
		struct transport_message message;
		enum esp_status status = ESP_OK;

		if (!next_message(shm, peer, &message))
			return;
		if (message.is_credit)
			put_credit(shm, peer, &message);
		else
			status = put_data(shm, peer, &message);
		if (status == ESP_PENDING) {
			peer->holds = true;
			peer->held = message;
			return;
		}
		shm->moved++;
		if (status != ESP_OK)
			shm_peer_lose(shm, peer, status);
		if (peer->is_lost || shm_has_ended(shm))
			return;
	}
}
