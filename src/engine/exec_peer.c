/*
 * exec_peer.c - the peers of an executor, and what is sent to them: numbers, windows, credits.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/exec_state.h"

/* ---- the table of peers ---- */

static struct peer_entry *peer_slot(const struct exec *exec, uint32_t node)
{
	uint32_t mask = exec->peer_capacity - 1, at = node * UINT32_C(0x9e3779b1) & mask;

	while (exec->peers[at].peer && exec->peers[at].node != node)
		at = (at + 1) & mask;
	return &exec->peers[at];
}

struct peer *exec_peer_seek(struct exec *exec, uint32_t node)
{
	if (exec->peer_capacity > 0)
		exec->recent = peer_slot(exec, node)->peer;
	return exec->recent;
}

static bool peers_grow(struct exec *exec)
{
	struct peer_entry *old = exec->peers;
	uint32_t old_capacity = exec->peer_capacity;
	uint32_t capacity = old_capacity ? old_capacity * 2 : 16;
	struct peer_entry *peers = calloc(capacity, sizeof(*peers));

	if (!peers)
		return false;
	exec->peers = peers;
	exec->peer_capacity = capacity;
	for (uint32_t i = 0; i < old_capacity; i++) {
		if (old[i].peer)
			*peer_slot(exec, old[i].node) = old[i];
	}
	free(old);
	return true;
}

static size_t peer_bytes(const struct exec *exec)
{
	return (sizeof(struct peer) + exec->config.credits * sizeof(struct op *) + CACHE_LINE - 1) / CACHE_LINE *
	       CACHE_LINE;
}

static bool slab_add(struct exec *exec)
{
	uint32_t before = exec->slabs ? exec->slabs->count : SLAB_PEERS_FIRST / 2;
	uint32_t count = before < SLAB_PEERS_MOST ? before * 2 : SLAB_PEERS_MOST;
	size_t bytes = count * peer_bytes(exec);
	struct peer_slab *slab = malloc(sizeof(*slab) + CACHE_LINE + bytes);

	if (!slab)
		return false;
	slab->peers = next_line(slab + 1);
	memset(slab->peers, 0, bytes);
	slab->used = 0;
	slab->count = count;
	slab->next = exec->slabs;
	exec->slabs = slab;
	return true;
}

static struct peer *slab_take(struct exec *exec, uint32_t node)
{
	uint32_t first = exec->config.first_index;

	if ((!exec->slabs || exec->slabs->used == exec->slabs->count) && !slab_add(exec))
		return NULL;
	struct peer *peer = (struct peer *)(void *)(exec->slabs->peers + exec->slabs->used++ * peer_bytes(exec));
	peer->node = node;
	peer->send_next = peer->send_acked = first;
	peer->recv_next = peer->recv_done = peer->recv_told = first;
	return peer;
}

struct peer *exec_peer_make(struct exec *exec, uint32_t node)
{
	if (exec->peer_count * 2 >= exec->peer_capacity && !peers_grow(exec))
		return NULL;
	struct peer *peer = slab_take(exec, node);
	if (!peer)
		return NULL;
	*peer_slot(exec, node) = (struct peer_entry){node, peer};
	exec->recent = peer;
	exec->peer_count++;
	return peer;
}

static void early_close(struct exec *exec, struct peer *peer)
{
	for (uint32_t i = 0; peer->early && i < exec->config.credits; i++) {
		if (peer->early[i].slotted)
			exec_pool_put(&exec->pool, (void *)(uintptr_t)peer->early[i].data);
	}
	free(peer->early);
}

void exec_peers_close(struct exec *exec)
{
	for (uint32_t i = 0; i < exec->peer_capacity; i++) {
		if (!exec->peers[i].peer)
			continue;
		early_close(exec, exec->peers[i].peer);
		free(exec->peers[i].peer->incoming);
		free(exec->peers[i].peer->later);
	}
	free(exec->peers);
	while (exec->slabs) {
		struct peer_slab *slab = exec->slabs;

		exec->slabs = slab->next;
		free(slab);
	}
	while (exec->incoming_free) {
		struct incoming *incoming = exec->incoming_free;

		exec->incoming_free = incoming->next_free;
		free(incoming);
	}
}

/* ---- sending ---- */

/* Puts the peer on the list that exec_ready() hands out. */
void exec_peer_list(struct exec *exec, struct peer *peer)
{
	if (peer->listed)
		return;
	peer->listed = true;
	peer->next_listed = NULL;
	if (exec->ready_last)
		exec->ready_last->next_listed = peer;
	else
		exec->ready_first = peer;
	exec->ready_last = peer;
}

static bool is_below(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0; /* numbers wrap */
}

static bool may_send(const struct exec *exec, const struct peer *peer)
{
	return peer->send_first && is_below(peer->send_first->index, peer->send_acked + exec->config.credits);
}

/*
 * Ready ops are sent lowest number first: the messages that all nodes wait for are in the oldest chunks. Mostly it is
 * the last.
 */
void exec_peer_queue_send(struct exec *exec, struct op *op)
{
	struct peer *peer = op->peer;
	struct op **at = &peer->send_first;

	if (*at && is_below(peer->send_last->index, op->index))
		at = &peer->send_last->next;
	while (*at && is_below((*at)->index, op->index))
		at = &(*at)->next;
	op->next = *at;
	*at = op;
	if (!op->next)
		peer->send_last = op;
	if (may_send(exec, peer))
		exec_peer_list(exec, peer);
}

/* Tell the peer what was consumed before it has to wait for it: at half of its credits. */
bool exec_peer_owes_credit(const struct exec *exec, const struct peer *peer)
{
	return (peer->recv_done - peer->recv_told) * 2 >= exec->config.credits && peer->recv_done != peer->recv_told;
}

bool exec_next(struct exec *exec, uint32_t node, struct transport_message *out)
{
	struct peer *peer = peer_find(exec, node);

	if (!peer || has_failed(exec))
		return false;
	if (may_send(exec, peer)) {
		struct op *op = peer->send_first;

		peer->send_first = op->next;
		if (!peer->send_first)
			peer->send_last = NULL;
		*out = (struct transport_message){
			.index = op->index,
			.call = op->run->digest,
			.content = op->content,
			.bytes = (uint32_t)op->run->piece.bytes,
			.data = exec_run_place(exec, op->run, op->step.place),
			.is_stored = op->is_stored,
			.cookie = op,
		};
		struct op *reply = exec_op_reply(exec, op);
		if (reply) {
			reply->is_open = true;
			out->reply = exec_run_place(exec, reply->run, reply->step.place);
		}
		exec->stats.messages_sent++;
	} else if (exec_peer_owes_credit(exec, peer)) {
		*out = (struct transport_message){.is_credit = true};
		exec->stats.credits_sent++;
	} else {
		return false;
	}
	out->ack = peer->recv_told = peer->recv_done;
	return true;
}

struct exec_chunk exec_chunk_out(const struct transport_message *message)
{
	const struct run *run = ((const struct op *)message->cookie)->run;

	return (struct exec_chunk){.id = run, .call = run->instance->number, .chunk = run->chunk};
}

uint32_t exec_ready(struct exec *exec)
{
	struct peer *peer = exec->ready_first;

	if (!peer || has_failed(exec))
		return UINT32_MAX;
	exec->ready_first = peer->next_listed;
	if (!exec->ready_first)
		exec->ready_last = NULL;
	peer->listed = false;
	exec->recent = peer;
	return peer->node;
}

enum esp_status exec_peer_acked(struct exec *exec, struct peer *peer, uint32_t ack)
{
	/* Taken back, or of what was never sent. */
	if (is_below(ack, peer->send_acked) || is_below(peer->send_next, ack))
		return ESP_ECORRUPT;
	peer->send_acked = ack;
	if (may_send(exec, peer))
		exec_peer_list(exec, peer);
	return ESP_OK;
}

enum esp_status exec_credit(struct exec *exec, uint32_t node, const struct transport_message *message)
{
	if (has_failed(exec))
		return exec->failure.status;
	struct peer *peer = peer_get(exec, node);
	if (!peer) {
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
		return ESP_ENOMEM;
	}
	return exec_peer_acked(exec, peer, message->ack);
}
