/* exec_receive.c - messages of peers: found by their number, taken in their turn, parked before it. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/exec_state.h"

/* ---- windows ---- */

static struct early *early_at(const struct exec *exec, const struct peer *peer, uint32_t index)
{
	return peer->early ? &peer->early[index % exec->config.credits] : NULL;
}

static bool in_window(const struct exec *exec, const struct peer *peer, uint32_t index)
{
	return index - peer->recv_done < exec->config.credits;
}

/* Is a message with these properties that of op, as far as one can tell? Sizes are the second line. */
static bool belongs(const struct op *op, uint32_t call, uint32_t bytes)
{
	return op->run->digest == call && op->run->piece.bytes == bytes;
}

/*
 * The peer may send the message of op, which has this index, now; it may have come already, before the call was started
 * here. In general op is not looked at: it was made long ago, and is far from the processor.
 */
static void open_window(struct exec *exec, struct peer *peer, uint32_t index, struct op *op)
{
	struct early *early = early_at(exec, peer, index);

	peer->window[index % exec->config.credits] = op;
	if (!early || early->state == OP_WAITING)
		return;
	if (!belongs(op, early->call, early->bytes)) {
		exec_mismatch(exec, peer->node, op->run->instance->number);
		return;
	}
	op->state = early->state;
	op->data = early->data;
	op->slotted = early->slotted;
	op->reply = early->reply;
	op->run->has_replies |= early->reply != NULL;
	if (early->state == OP_ARRIVING)
		peer->incoming->op = op;
	*early = (struct early){0};
}

/* Room for all numbers that are planned. */
static bool later_grow(struct peer *peer)
{
	uint32_t room = peer->later_room ? peer->later_room : 16;

	while (room < peer->recv_next - peer->recv_done)
		room *= 2;
	struct op **later = calloc(room, sizeof(struct op *));
	if (!later)
		return false;
	for (uint32_t i = 0; i < peer->later_room; i++) {
		if (peer->later[i])
			later[peer->later[i]->index & (room - 1)] = peer->later[i];
	}
	free(peer->later);
	peer->later = later;
	peer->later_room = room;
	return true;
}

bool exec_peer_expect(struct exec *exec, struct op *op)
{
	struct peer *peer = op->peer;

	if (in_window(exec, peer, op->index)) {
		open_window(exec, peer, op->index, op);
		return true;
	}
	if (op->index - peer->recv_done >= peer->later_room && !later_grow(peer))
		return false;
	peer->later[op->index & (peer->later_room - 1)] = op;
	return true;
}

/* The number at the far end has just come into the window; its op may have waited for that. */
static void later_take(struct exec *exec, struct peer *peer)
{
	uint32_t edge = peer->recv_done + exec->config.credits - 1;
	struct op **place = &peer->later[edge & (peer->later_room - 1)], *op = *place;

	if (!op)
		return;
	*place = NULL;
	open_window(exec, peer, edge, op);
}

/* Moves recv_done over what was consumed, and the window with it. */
static void move_window(struct exec *exec, struct peer *peer)
{
	for (;;) {
		uint64_t low = UINT64_C(1) << peer->recv_done % exec->config.credits;

		if (!(peer->consumed & low))
			break;
		peer->consumed &= ~low;
		peer->recv_done++;
		if (peer->later)
			later_take(exec, peer);
	}
}

/* Were the bytes at op->data, which have just been read, still what the peer had offered? */
static bool was_revoked(const struct op *op)
{
	if (op->slotted || !op->peer->revoked)
		return false;
	/* The reads of the data come before the look at the flag; the peer sets it before it writes. */
#ifndef __SANITIZE_THREAD__ /* which knows no fences; tests of this run in one thread */
	atomic_thread_fence(memory_order_acquire);
#endif
	return atomic_load_explicit(op->peer->revoked, memory_order_relaxed) != 0;
}

/* The message of op has been used: its slot is free, and the window moves on. */
void exec_peer_consume(struct exec *exec, struct op *op)
{
	struct peer *peer = op->peer;
	uint32_t bit = op->index % exec->config.credits;

	if (was_revoked(op)) {
		exec_fail(exec, peer->node, ESP_EPEER);
		return;
	}
	if (op->slotted)
		exec_pool_put(&exec->pool, (void *)(uintptr_t)op->data);
	op->slotted = false;
	op->data = NULL;
	peer->window[bit] = NULL;
	peer->consumed |= UINT64_C(1) << bit;
	move_window(exec, peer);
	if (exec_peer_owes_credit(exec, peer))
		exec_peer_list(exec, peer);
}

static bool was_consumed(const struct exec *exec, const struct peer *peer, uint32_t index)
{
	return peer->consumed >> index % exec->config.credits & 1;
}

static enum esp_status out_of_memory(struct exec *exec)
{
	exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
	return ESP_ENOMEM;
}

/* Takes note of a message that begins; *out_op is NULL if its call has not been started here. */
static enum esp_status admit(struct exec *exec, uint32_t node, const struct transport_message *message,
                             struct peer **out_peer, struct op **out_op)
{
	if (has_failed(exec))
		return exec->failure.status;
	struct peer *peer = peer_get(exec, node);
	if (!peer)
		return out_of_memory(exec);
	enum esp_status status = exec_peer_acked(exec, peer, message->ack);
	if (status != ESP_OK)
		return status;
	if (!in_window(exec, peer, message->index) || was_consumed(exec, peer, message->index) ||
	    message->bytes > exec->config.slot_bytes)
		return ESP_ECORRUPT;
	struct op *op = peer->window[message->index % exec->config.credits];
	if (op && op->state != OP_WAITING)
		return ESP_ECORRUPT;
	if (op && !belongs(op, message->call, message->bytes)) {
		exec_mismatch(exec, node, op->run->instance->number);
		return ESP_EMISMATCH;
	}
	if (!op && !peer->early) {
		peer->early = calloc(exec->config.credits, sizeof(*peer->early));
		if (!peer->early)
			return out_of_memory(exec);
	}
	if (!op && early_at(exec, peer, message->index)->state != OP_WAITING)
		return ESP_ECORRUPT;
	exec->stats.messages_received++;
	*out_peer = peer;
	*out_op = op;
	return ESP_OK;
}

/* The message has to wait at data until its turn comes, or until its call is started. */
static void park(struct exec *exec, struct peer *peer, struct op *op, const struct transport_message *message,
                 enum op_state state, const void *data, bool slotted)
{
	exec->stats.parked++;
	if (op) {
		op->state = (uint8_t)state;
		op->data = data;
		op->slotted = slotted;
		op->reply = message->reply;
		op->is_stored = message->is_stored;
		op->run->has_replies |= message->reply != NULL;
	} else {
		*early_at(exec, peer, message->index) = (struct early){
			.data = data,
			.reply = message->reply,
			.bytes = message->bytes,
			.call = message->call,
			.state = (uint8_t)state,
			.slotted = slotted,
		};
	}
}

/* Where a message is kept until its turn comes: *out is NULL where there are no bytes. */
static enum esp_status slot_get(struct exec *exec, const struct transport_message *message, uint8_t **out)
{
	*out = NULL;
	if (exec->config.dry || message->bytes == 0)
		return ESP_OK;
	uint8_t *slot = exec_pool_get(&exec->pool);
	if (!slot)
		return out_of_memory(exec);
	*out = slot + message->shift;
	return ESP_OK;
}

static enum esp_status aim_at_slot(struct exec *exec, struct peer *peer, struct op *op,
                                   const struct transport_message *message)
{
	uint8_t *slot;

	if (slot_get(exec, message, &slot) != ESP_OK)
		return exec->failure.status;
	park(exec, peer, op, message, OP_ARRIVING, slot, slot != NULL);
	peer->incoming->arrival = ARRIVAL_PLACE;
	peer->incoming->target = slot;
	return ESP_OK;
}

/* ---- the message that is arriving ---- */

static struct incoming *incoming_get(struct exec *exec)
{
	struct incoming *incoming = exec->incoming_free;

	if (!incoming)
		return malloc(sizeof(*incoming));
	exec->incoming_free = incoming->next_free;
	return incoming;
}

static void incoming_put(struct exec *exec, struct peer *peer)
{
	peer->incoming->next_free = exec->incoming_free;
	exec->incoming_free = peer->incoming;
	peer->incoming = NULL;
}

static void message_done(struct exec *exec, struct peer *peer)
{
	struct incoming incoming = *peer->incoming;
	struct op *op = incoming.op;

	incoming_put(exec, peer);
	if (incoming.direct) {
		exec_run_received(exec, op->run);
	} else if (op) {
		op->state = OP_PARKED;
		if (exec_run_waits_on(op->run, op))
			exec_run_advance(exec, op->run);
	} else {
		early_at(exec, peer, incoming.index)->state = OP_PARKED;
	}
}

enum esp_status exec_begin(struct exec *exec, uint32_t node, const struct transport_message *message)
{
	struct peer *peer;
	struct op *op;
	enum esp_status status = admit(exec, node, message, &peer, &op);

	if (status != ESP_OK)
		return status;
	assert(!peer->incoming); /* the one before it has ended */
	peer->incoming = incoming_get(exec);
	if (!peer->incoming)
		return out_of_memory(exec);
	*peer->incoming = (struct incoming){
		.index = message->index,
		.bytes = message->bytes,
		.shift = message->shift,
		.op = op,
		.direct = op && !op->run->stores && exec_run_waits_on(op->run, op),
	};
	if (peer->incoming->direct) {
		op->state = OP_ARRIVING;
		exec_run_aim(exec, op->run, peer->incoming);
	} else {
		status = aim_at_slot(exec, peer, op, message);
	}
	if (status != ESP_OK)
		incoming_put(exec, peer);
	return has_failed(exec) ? exec->failure.status : status;
}

/* The bytes of a whole message go where its turn has aimed it. */
static void put_whole(struct exec *exec, const struct incoming *incoming, const struct transport_message *message)
{
	const struct instance *instance = incoming->op->run->instance;
	uint32_t bytes = message->bytes;

	if (exec->config.dry || bytes == 0 || has_failed(exec))
		return;
	if (incoming->arrival == ARRIVAL_PLACE)
		memcpy(incoming->target, message->data, bytes);
	else if (incoming->leads)
		instance->fold(incoming->target, message->data, incoming->other, bytes / instance->element_bytes);
	else
		instance->fold(incoming->target, incoming->other, message->data, bytes / instance->element_bytes);
}

/* It waits for its turn in a slot. */
static enum esp_status keep_whole(struct exec *exec, struct peer *peer, struct op *op,
                                  const struct transport_message *message)
{
	uint8_t *slot;

	if (slot_get(exec, message, &slot) != ESP_OK)
		return exec->failure.status;
	if (slot)
		memcpy(slot, message->data, message->bytes);
	park(exec, peer, op, message, OP_PARKED, slot, slot != NULL);
	if (op && exec_run_waits_on(op->run, op))
		exec_run_advance(exec, op->run);
	return ESP_OK;
}

enum esp_status exec_take(struct exec *exec, uint32_t node, const struct transport_message *message)
{
	struct peer *peer;
	struct op *op;
	enum esp_status status = admit(exec, node, message, &peer, &op);

	if (status != ESP_OK)
		return status;
	assert(!peer->incoming); /* the one before it has ended */
	if (op && !op->run->stores && exec_run_waits_on(op->run, op)) {
		struct incoming incoming = {.op = op};

		op->state = OP_ARRIVING;
		exec_run_aim(exec, op->run, &incoming);
		put_whole(exec, &incoming, message);
		if (!has_failed(exec))
			exec_run_received(exec, op->run);
	} else {
		status = keep_whole(exec, peer, op, message);
	}
	if (!has_failed(exec))
		exec_fill(exec);
	return has_failed(exec) ? exec->failure.status : status;
}

enum esp_status exec_offer(struct exec *exec, uint32_t node, const struct transport_message *message)
{
	struct peer *peer;
	struct op *op;
	enum esp_status status = admit(exec, node, message, &peer, &op);

	if (status != ESP_OK)
		return status;
	/* Only what we said a place for can have been stored. */
	if (message->is_stored && !(op && op->is_open))
		return ESP_ECORRUPT;
	peer->revoked = message->revoked;
	peer->storing = message->storing;
	park(exec, peer, op, message, OP_PARKED, message->data, false);
	if (op && exec_run_waits_on(op->run, op)) {
		exec_run_advance(exec, op->run);
		exec_fill(exec);
	}
	return exec->failure.status;
}

uint32_t exec_consumed(struct exec *exec, uint32_t node)
{
	const struct peer *peer = peer_find(exec, node);

	return peer ? peer->recv_done : exec->config.first_index;
}

bool exec_chunk_in(struct exec *exec, uint32_t node, uint32_t index, struct exec_chunk *out)
{
	const struct peer *peer = peer_find(exec, node);
	const struct op *op = peer && in_window(exec, peer, index) ? peer->window[index % exec->config.credits] : NULL;

	if (!op || op->index != index)
		return false;
	*out = (struct exec_chunk){op->run, op->run->instance->number, op->run->chunk, op->step.verb == PLAN_TERM};
	return true;
}

/*
 * Where in staging the bytes lie that are combined next. A message comes in pieces of any length: these keep the place
 * within a cache line that they had in their sender's memory, so that copying them there (wire/frame.h) and combining
 * them with the chunk is fast.
 */
static uint8_t *staged(const struct exec *exec, const struct incoming *incoming)
{
	return *exec->staging + (incoming->shift + incoming->got - incoming->carried) % STAGING_ALIGN;
}

struct transport_room exec_room(struct exec *exec, uint32_t node)
{
	struct peer *peer = peer_find(exec, node);
	struct incoming *incoming = peer->incoming;
	uint32_t left = incoming->bytes - incoming->got;

	if (exec->config.dry)
		return (struct transport_room){NULL, left};
	if (has_failed(exec)) /* the buffers are not touched any more; there is no staging if no call was ever started */
		return (struct transport_room){*exec->staging, left < STAGING_BYTES ? left : STAGING_BYTES};
	if (incoming->arrival == ARRIVAL_PLACE)
		return (struct transport_room){incoming->target + incoming->got, left};
	uint8_t *at = staged(exec, incoming);
	memcpy(at, incoming->carry, incoming->carried);
	at += incoming->carried;
	uint32_t room = (uint32_t)(*exec->staging + STAGING_BYTES - at);
	return (struct transport_room){at, left < room ? left : room};
}

/* Combines the whole elements in staging with the other operand; what is left of a split one is carried over. */
static void add_staged(struct exec *exec, struct incoming *incoming, uint32_t bytes)
{
	const struct instance *instance = incoming->op->run->instance;
	uint32_t have = incoming->carried + bytes;
	uint32_t count = have / instance->element_bytes, whole = count * instance->element_bytes;
	uint32_t from = incoming->got - incoming->carried;
	const uint8_t *staging = staged(exec, incoming);
	uint8_t *target = incoming->target + from;
	const uint8_t *other = incoming->other + from;

	if (incoming->leads)
		instance->fold(target, staging, other, count);
	else
		instance->fold(target, other, staging, count);
	incoming->carried = (uint8_t)(have - whole);
	memcpy(incoming->carry, staging + whole, incoming->carried);
}

void exec_arrived(struct exec *exec, uint32_t node, uint32_t bytes)
{
	struct peer *peer = peer_find(exec, node);
	struct incoming *incoming = peer->incoming;

	if (has_failed(exec)) {
		incoming->got += bytes;
		return;
	}
	if (!exec->config.dry && incoming->arrival == ARRIVAL_ADD)
		add_staged(exec, incoming, bytes);
	incoming->got += bytes;
}

void exec_ended(struct exec *exec, uint32_t node)
{
	struct peer *peer = peer_find(exec, node);

	if (has_failed(exec))
		return;
	assert(peer->incoming->got == peer->incoming->bytes);
	message_done(exec, peer);
	exec_fill(exec);
}
