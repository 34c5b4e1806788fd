/*
 * store_send.c - answers leave: per worker in the order in which they became due.
 */
#include <assert.h>
#include <stddef.h>

#include "hub/store/store_state.h"

void store_send_due(struct store_lane *lane, uint32_t chunk, uint32_t worker)
{
	struct store_request *request = store_request(lane, chunk, worker);
	struct store_peer *peer = &lane->peers[worker];

	assert(request->state == STORE_WAITING && lane->chunks[chunk].has_weights);
	request->state = STORE_DUE;
	request->link = STORE_NO_CHUNK;
	if (peer->first_due == STORE_NO_CHUNK) {
		peer->first_due = chunk;
		lane->ready |= UINT64_C(1) << worker;
	} else {
		store_request(lane, peer->last_due, worker)->link = chunk;
	}
	peer->last_due = chunk;
}

static uint32_t take_due(struct store_lane *lane, uint32_t worker)
{
	struct store_peer *peer = &lane->peers[worker];
	uint32_t chunk = peer->first_due;

	if (chunk == STORE_NO_CHUNK)
		return chunk;
	struct store_request *request = store_request(lane, chunk, worker);
	assert(request->state == STORE_DUE);
	peer->first_due = request->link;
	request->state = STORE_IDLE;
	return chunk;
}

/* Of the weights of one version of a chunk; 0 stands for no number. */
static uint64_t content_number(uint32_t number, uint64_t version)
{
	static_assert(LAYOUT_CHUNKS_MOST <= 1u << 24, "a chunk's number has 24 bits");
	return (version << 24 | number) + 1;
}

/* Lends the weights, or an array of the optimizer, until they are sent. */
static void lend(struct store_lane *lane, uint32_t number, uint8_t kind, struct transport_message *out)
{
	struct store_chunk *chunk = &lane->chunks[number];

	chunk->sending++;
	out->cookie = chunk;
	if (hub_kind_is_read(kind)) {
		out->channel = HUB_ARRAY;
		out->bytes = store_cut(lane, number)->elements * (uint32_t)sizeof(float);
		out->data = store_array(lane, number, kind - HUB_READ);
	} else {
		out->channel = HUB_WEIGHTS;
		out->bytes = store_bytes(lane, number);
		out->data = store_weights(lane, number);
		out->content = content_number(lane->numbers[number], chunk->version);
	}
	lane->stats.pulled_bytes += out->bytes;
}

bool store_send_next(void *user, uint32_t worker, struct transport_message *out)
{
	struct store_lane *lane = user;

	assert(worker < lane->config.workers);
	uint32_t chunk = lane->failure == ESP_OK ? take_due(lane, worker) : STORE_NO_CHUNK;
	if (chunk == STORE_NO_CHUNK)
		return false;
	uint8_t kind = store_request(lane, chunk, worker)->kind;
	*out = (struct transport_message){
		.channel = HUB_DONE,
		.index = lane->peers[worker].messages_out++,
		.ack = (uint32_t)lane->chunks[chunk].version,
		.call = lane->numbers[chunk],
	};
	if (lane->config.is_async && kind == HUB_PULL)
		store_async_lend(lane, chunk, worker, out);
	else if (kind == HUB_PULL || kind == HUB_PUSHPULL || hub_kind_is_read(kind))
		lend(lane, chunk, kind, out);
	return true;
}

uint32_t store_send_ready(void *user)
{
	struct store_lane *lane = user;

	if (lane->ready == 0 || lane->failure != ESP_OK)
		return UINT32_MAX;
	uint32_t worker = (uint32_t)__builtin_ctzll(lane->ready);
	lane->ready &= lane->ready - 1;
	return worker;
}

void store_send_sent(void *user, uint32_t worker, uint16_t channel, void *cookie)
{
	struct store_lane *lane = user;
	struct store_chunk *chunk = cookie;

	assert(worker < lane->config.workers);
	if ((channel != HUB_WEIGHTS && channel != HUB_ARRAY) || lane->failure != ESP_OK)
		return;
	ptrdiff_t number = chunk - lane->chunks;
	assert(number >= 0 && number < lane->chunk_count);
	if (lane->config.is_async) {
		store_async_sent(lane, (uint32_t)number, worker);
		return;
	}
	assert(chunk->sending > 0);
	chunk->sending--;
	chunk->reads -= channel == HUB_ARRAY;
	store_chunk_try_update(lane, (uint32_t)number);
}
