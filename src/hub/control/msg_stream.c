#include "hub/control/msg_stream.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "wire/bytes.h"

#define LEAST_ROOM 4096u

void msg_stream_init(struct msg_stream *stream, const uint8_t session[HANDSHAKE_KEY_BYTES], bool is_listener)
{
	memset(stream, 0, offsetof(struct msg_stream, in));
	stream->in_bytes = stream->in_used = 0;
	memcpy(stream->key, session, HANDSHAKE_KEY_BYTES);
	stream->is_listener = is_listener;
}

void msg_stream_fini(struct msg_stream *stream)
{
	sodium_memzero(stream->key, sizeof(stream->key));
	if (stream->out)
		sodium_memzero(stream->out, stream->out_room);
	free(stream->out);
	stream->out = NULL;
	stream->out_at = stream->out_bytes = stream->out_room = 0;
}

/* ---- seals ---- */

static void make_tag(const struct msg_stream *stream, bool by_listener, uint64_t number, const uint8_t *bytes, size_t n,
                     uint8_t out[MSG_STREAM_TAG_BYTES])
{
	crypto_generichash_state state;
	uint8_t head[16] = "hub tag";

	head[7] = by_listener;
	bytes_put64(head + 8, number);
	crypto_generichash_init(&state, stream->key, sizeof(stream->key), MSG_STREAM_TAG_BYTES);
	crypto_generichash_update(&state, head, sizeof(head));
	crypto_generichash_update(&state, bytes, n);
	crypto_generichash_final(&state, out, MSG_STREAM_TAG_BYTES);
}

/* Hides a key in a ticket, or shows it again: a pad that is used once, as each message has another number. */
static void hide(const struct msg_stream *stream, bool by_listener, uint64_t number, uint8_t key[HUB_KEY_BYTES])
{
	uint8_t head[16] = "hub pad", pad[HUB_KEY_BYTES];

	head[7] = by_listener;
	bytes_put64(head + 8, number);
	crypto_generichash(pad, sizeof(pad), head, sizeof(head), stream->key, sizeof(stream->key));
	for (size_t i = 0; i < sizeof(pad); i++)
		key[i] ^= pad[i];
	sodium_memzero(pad, sizeof(pad));
}

/* ---- out ---- */

static enum esp_status make_room(struct msg_stream *stream, size_t bytes)
{
	size_t unsent = stream->out_bytes - stream->out_at, wanted = unsent + bytes;

	if (wanted > MSG_STREAM_UNSENT_MOST)
		return ESP_ELIMIT;
	if (stream->out_bytes + bytes <= stream->out_room)
		return ESP_OK;
	if (unsent > 0)
		memmove(stream->out, stream->out + stream->out_at, unsent);
	stream->out_at = 0;
	stream->out_bytes = unsent;
	if (wanted < LEAST_ROOM)
		wanted = LEAST_ROOM;
	return vec_reserve(&stream->out, &stream->out_room, wanted, 1) ? ESP_OK : ESP_ENOMEM;
}

enum esp_status msg_stream_put(struct msg_stream *stream, const struct hub_msg *msg)
{
	struct hub_msg hidden = *msg;
	enum esp_status status = make_room(stream, HUB_MSG_MOST + MSG_STREAM_TAG_BYTES);

	if (status != ESP_OK)
		return status;
	uint8_t *at = stream->out + stream->out_bytes;
	if (msg->type == HUB_MSG_TICKET)
		hide(stream, stream->is_listener, stream->put, hidden.ticket.key);
	size_t n = hub_msg_encode(&hidden, at);
	make_tag(stream, stream->is_listener, stream->put++, at, n, at + n);
	stream->out_bytes += n + MSG_STREAM_TAG_BYTES;
	return ESP_OK;
}

size_t msg_stream_output(const struct msg_stream *stream, const uint8_t **out)
{
	*out = stream->out + stream->out_at;
	return stream->out_bytes - stream->out_at;
}

void msg_stream_sent(struct msg_stream *stream, size_t n)
{
	assert(n <= stream->out_bytes - stream->out_at);
	stream->out_at += n;
	if (stream->out_at == stream->out_bytes)
		stream->out_at = stream->out_bytes = 0;
}

/* ---- in ---- */

static void drop_used(struct msg_stream *stream)
{
	if (stream->in_used == 0)
		return;
	memmove(stream->in, stream->in + stream->in_used, stream->in_bytes - stream->in_used);
	stream->in_bytes -= stream->in_used;
	stream->in_used = 0;
}

size_t msg_stream_room(struct msg_stream *stream, uint8_t **out)
{
	drop_used(stream);
	*out = stream->in + stream->in_bytes;
	return sizeof(stream->in) - stream->in_bytes;
}

void msg_stream_arrived(struct msg_stream *stream, size_t n)
{
	assert(stream->in_used == 0 && n <= sizeof(stream->in) - stream->in_bytes);
	stream->in_bytes += n;
}

enum esp_status msg_stream_take(struct msg_stream *stream, struct hub_msg *out)
{
	uint8_t tag[MSG_STREAM_TAG_BYTES];
	size_t used = 0;

	drop_used(stream);
	switch (hub_msg_decode(stream->in, stream->in_bytes, out, &used)) {
	case HUB_MSG_SHORT:
		return ESP_PENDING;
	case HUB_MSG_DAMAGED:
		return ESP_ECORRUPT;
	case HUB_MSG_WHOLE:
		break;
	}
	if (stream->in_bytes - used < MSG_STREAM_TAG_BYTES)
		return ESP_PENDING;
	make_tag(stream, !stream->is_listener, stream->taken, stream->in, used, tag);
	if (sodium_memcmp(tag, stream->in + used, sizeof(tag)) != 0)
		return ESP_ECORRUPT;
	if (out->type == HUB_MSG_TICKET)
		hide(stream, !stream->is_listener, stream->taken, out->ticket.key);
	stream->taken++;
	stream->in_used = used + MSG_STREAM_TAG_BYTES;
	return ESP_OK;
}
