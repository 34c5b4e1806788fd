/* shm_receive.c - messages that others leave for us: checked, offered to the user, and acknowledged once consumed. */
#include <stdlib.h>
#include <string.h>

#include "transport/shm/shm_state.h"

/* Descriptors of one peer in a turn, so that all get theirs. */
#define TAKE_MOST 64u
/*
 * Before so much is read, peers get what there is for them: else they would wait until all that lies in the ring is
 * summed, and we for them after that (two ranks with 256 KiB or 1 MiB took twice as long). Copies, where ranks share
 * cores, are an exception: most of those that wait do not run anyway, and the more slots are taken the fewer are in a
 * cache.
 */
#define HAND_OVER_BYTES (16u << 10)

/* ---- descriptors ---- */

/* Could our peer have written this? */
static bool is_sound(const struct shm *shm, const struct peer *peer, const struct ring_note *note)
{
	switch (note->kind) {
	case RING_CREDIT:
	case RING_END:
		return true;
	case RING_EMPTY:
		return note->stamp != 0 && note->bytes == 0;
	case RING_SLOT:
	case RING_BRIEF:
		return note->stamp != 0 && note->bytes > 0 && note->bytes <= shm->segment->config.slot_bytes &&
		       layout_is_slot(shm->layout, shm->lane, note->at);
	case RING_STORED:
		return peer->view->is_open && shm_segment_is_open(shm->segment) && note->stamp != 0 && note->bytes > 0 &&
		       note->bytes <= shm->segment->config.slot_bytes;
	case RING_OPEN:
		if (!layout_is_heap(shm->layout, note->reply, note->bytes))
			return false;
		/* fall through */
	case RING_HEAP:
		return note->stamp != 0 && note->bytes > 0 && note->bytes <= shm->segment->config.slot_bytes &&
		       layout_is_heap(shm->layout, note->at, note->bytes);
	default:
		return false;
	}
}

/* Takes note of a message of the flow; one with data is looked after until it is consumed. */
static void expect(struct shm *shm, struct peer *peer, struct flow *flow, const struct ring_note *note)
{
	uint32_t end = note->index + 1;

	if (flow->their_stamp != note->stamp) {
		flow->their_stamp = note->stamp;
		flow->offers_end = end;
		flow->has_heap = false;
		flow->our_counter =
			segment_at(shm->segment, layout_consumed(shm->layout, shm->lane, peer->local, note->channel));
	}
	if (flow_is_below(flow->offers_end, end))
		flow->offers_end = end;
	if (ring_is_lent(note->kind)) {
		flow->heap_end = flow->has_heap && flow_is_below(end, flow->heap_end) ? flow->heap_end : end;
		flow->has_heap = true;
	}
	if (note->bytes > 0 && note->kind != RING_STORED) /* a message that is stored already cannot be taken back */
		shm_flow_list_receiving(&peer->flows, flow);
}

/* It is not wanted, nor any other message of the channel: it counts as consumed. */
static void drop(struct shm *shm, struct peer *peer, const struct ring_note *note)
{
	struct flow *flow = shm_flows_find(&peer->flows, note->channel);

	if (flow && flow->their_stamp == note->stamp) {
		expect(shm, peer, flow, note);
		flow->was_dropped = true;
		return;
	}
	_Atomic uint64_t *counter =
		segment_at(shm->segment, layout_consumed(shm->layout, shm->lane, peer->local, note->channel));
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
	if (value >> 32 == note->stamp && flow_is_below(note->index, (uint32_t)value))
		return;
	atomic_store_explicit(counter, ring_pair(note->index + 1, note->stamp), memory_order_release);
	peer_tell(shm, peer, ring_is_lent(note->kind) ? DOZE_NEWS : DOZE_ROOM);
}

/* The sender needs the slot again as soon as the descriptor is taken. NULL: no memory. */
static struct copy *copy_brief(const struct peer *peer, const struct ring_note *note)
{
	struct copy *copy = malloc(sizeof(*copy) + note->bytes);

	if (!copy)
		return NULL;
	copy->index = note->index;
	memcpy(copy->data, view_at(peer->view, note->at), note->bytes);
	return copy;
}

/* Where the answer to an open message goes; NULL: nowhere where we could store it. */
static void *reply_to(const struct peer *peer, const struct ring_note *note)
{
	return note->kind == RING_OPEN && peer->view->is_open ? (void *)(uintptr_t)view_at(peer->view, note->reply) : NULL;
}

/* Asks the user, and takes note of what it says. copy: where the data is, if it is not in the peer's segment; taken. */
static enum esp_status offer(struct shm *shm, struct peer *peer, const struct ring_note *note, struct copy *copy)
{
	bool is_stored = note->kind == RING_STORED;
	struct transport_message message = {
		.channel = note->channel,
		.index = note->index,
		.ack = note->ack,
		.call = note->call,
		.bytes = note->bytes,
		.data = copy ? copy->data : is_stored ? NULL : view_at(peer->view, note->at),
		.is_stored = is_stored,
		.reply = reply_to(peer, note),
		.storing = shm->storing,
		.revoked = view_at(peer->view, layout_revoked(shm->layout, shm->lane, shm->self, note->channel)),
	};
	enum esp_status status = shm->user->offer(shm->context, peer->number, &message);
	/* Only now, so that nothing is kept of channels that are unknown. */
	struct flow *flow = status == ESP_OK ? shm_flows_get(&peer->flows, note->channel) : NULL;

	if (!flow) {
		free(copy);
		return status == ESP_OK ? ESP_ENOMEM : status;
	}
	flow->was_dropped = false;
	expect(shm, peer, flow, note);
	if (copy) {
		copy->next = flow->copies;
		flow->copies = copy;
	}
	return ESP_OK;
}

static enum esp_status take_data(struct shm *shm, struct peer *peer, const struct ring_note *note)
{
	const struct flow *flow = shm_flows_find(&peer->flows, note->channel);
	struct copy *copy = NULL;

	/* A channel is used again only after all have forgotten it. */
	if (flow && flow->is_receiving && flow->their_stamp != note->stamp)
		return ESP_ECORRUPT;
	if (note->kind == RING_BRIEF) {
		copy = copy_brief(peer, note);
		if (!copy)
			return ESP_ENOMEM;
	}
	shm->stats.messages_received++;
	shm->stats.received_bytes += note->bytes;
	enum esp_status status = offer(shm, peer, note, copy);
	if (status == ESP_PENDING && (note->kind == RING_SLOT || ring_is_lent(note->kind)))
		drop(shm, peer, note);
	return status;
}

/* An acknowledgement of what we sent in an earlier use of the channel is late, and says nothing any more. */
static enum esp_status take_credit(struct shm *shm, struct peer *peer, const struct ring_note *note)
{
	const struct flow *flow = shm_flows_find(&peer->flows, note->channel);
	struct transport_message message = {.is_credit = true, .channel = note->channel, .ack = note->ack};

	if (note->stamp != (flow ? flow->stamp : 0))
		return ESP_PENDING;
	return shm->user->credit(shm->context, peer->number, &message);
}

/* ESP_PENDING: it is not wanted. Anything but that and ESP_OK: the peer is lost. */
static enum esp_status take(struct shm *shm, struct peer *peer, const struct ring_note *note)
{
	if (!is_sound(shm, peer, note))
		return ESP_ECORRUPT;
	if (note->kind == RING_END)
		return ESP_EPEER;
	return note->kind == RING_CREDIT ? take_credit(shm, peer, note) : take_data(shm, peer, note);
}

void shm_peer_receive(struct shm *shm, struct peer *peer)
{
	enum ring_look look = RING_SOME;
	uint64_t first = peer->from_position;

	for (uint32_t i = 0; i < TAKE_MOST; i++) {
		struct ring_note note;

		look = ring_take(peer->from, peer->from_position, &note);
		if (look != RING_SOME)
			break;
		if (note.kind == RING_OPEN)
			note.reply =
				atomic_load_explicit(&peer->from_replies[peer->from_position % LAYOUT_RING], memory_order_relaxed);
		peer->from_position++;
		shm->moved++;
		if (note.bytes >= HAND_OVER_BYTES && note.kind != RING_STORED &&
		    (ring_is_lent(note.kind) || !shm->is_crowded)) {
			shm_hand_over(shm);
			if (shm->has_ended || peer->is_lost)
				return;
		}
		enum esp_status status = take(shm, peer, &note);
		/* A user that failed by itself is no fault of the peer. */
		if (shm_has_ended(shm))
			return;
		if (status != ESP_OK && status != ESP_PENDING) {
			shm_peer_lose(shm, peer, status);
			return;
		}
	}
	if (peer->from_position != first) {
		/* We have read the descriptors: their places may be written. */
		atomic_store_explicit(peer->our_taken, (uint32_t)peer->from_position, memory_order_release);
		peer_tell(shm, peer, DOZE_ROOM);
	}
	if (look == RING_NONSENSE)
		shm_peer_lose(shm, peer, ESP_ECORRUPT);
}

/* ---- what was consumed ---- */

static uint32_t consumed_of(const struct shm *shm, const struct peer *peer, const struct flow *flow)
{
	return flow->was_dropped ? flow->offers_end : shm->user->consumed(shm->context, peer->number, flow->channel);
}

/* We have read what is below end, and the sender may do with it what it likes. */
static void publish(struct shm *shm, struct peer *peer, struct flow *flow, uint32_t end)
{
	flow->published = ring_pair(end, flow->their_stamp);
	atomic_store_explicit(flow->our_counter, flow->published, memory_order_release);
	peer_tell(shm, peer, flow->has_heap ? DOZE_NEWS : DOZE_ROOM);
	if (flow->has_heap && !flow_is_below(end, flow->heap_end))
		flow->has_heap = false;
}

void shm_peer_publish(struct shm *shm, struct peer *peer)
{
	for (struct flow **at = &peer->flows.receiving; *at;) {
		struct flow *flow = *at;
		uint32_t end = consumed_of(shm, peer, flow);

		if (flow->published != ring_pair(end, flow->their_stamp)) {
			publish(shm, peer, flow, end);
			shm->moved++;
		}
		if (flow->copies)
			shm_flow_drop_copies(flow, end);
		if (flow_is_below(end, flow->offers_end)) {
			at = &flow->next_receiving;
		} else {
			*at = flow->next_receiving;
			flow->is_receiving = false;
		}
	}
}

bool shm_peer_has_to_publish(const struct shm *shm, const struct peer *peer)
{
	for (const struct flow *flow = peer->flows.receiving; flow; flow = flow->next_receiving) {
		if (flow->published != ring_pair(consumed_of(shm, peer, flow), flow->their_stamp))
			return true;
	}
	return false;
}

void shm_peer_forget_offered(struct shm *shm, struct peer *peer, struct flow *flow)
{
	if (!flow->is_receiving)
		return;
	publish(shm, peer, flow, flow->offers_end);
	shm_flow_drop_copies(flow, flow->offers_end);
	shm_flow_unlist_receiving(&peer->flows, flow);
}
