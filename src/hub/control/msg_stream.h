/*
 * msg_stream.h - one end of a parameter hub's control connection: messages in and out, each with a tag.
 *
 * After the handshake both ends have a key that only they know (node/auth/handshake.h, session). Each message
 * (wire/hub_msg.h) is followed by a keyed hash over direction, number and bytes, so it cannot be changed, left out,
 * repeated or reflected on the way; keys in tickets are hidden with a pad from the same key. Pure: no I/O, no clock;
 * one thread at a time. The caller moves bytes between the stream and the socket.
 */
#ifndef HUB_CONTROL_MSG_STREAM_H
#define HUB_CONTROL_MSG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "node/auth/handshake.h"
#include "wire/hub_msg.h"

#define MSG_STREAM_TAG_BYTES 16u
/* Unsent bytes at most: a peer that takes nothing is given up. All tensors of a model have room. */
#define MSG_STREAM_UNSENT_MOST (4u << 20)

struct msg_stream {
	uint8_t key[HANDSHAKE_KEY_BYTES];
	bool is_listener;
	uint64_t put, taken; /* messages so far */
	uint8_t *out;        /* owned: unsent bytes are [out_at, out_bytes) */
	size_t out_at, out_bytes, out_room;
	uint8_t in[HUB_MSG_MOST + MSG_STREAM_TAG_BYTES];
	size_t in_bytes, in_used; /* received; of the message that was handed out last */
};

void msg_stream_init(struct msg_stream *stream, const uint8_t session[HANDSHAKE_KEY_BYTES], bool is_listener);
void msg_stream_fini(struct msg_stream *stream); /* wipes the key; accepts a zeroed struct */

/* ESP_ELIMIT: too much is unsent; ESP_ENOMEM. */
ESP_CHECKED enum esp_status msg_stream_put(struct msg_stream *stream, const struct hub_msg *msg);
/* The bytes to send now. */
size_t msg_stream_output(const struct msg_stream *stream, const uint8_t **out);
void msg_stream_sent(struct msg_stream *stream, size_t n);

/* Where the next bytes go, and how many may; never 0 after msg_stream_take() has returned ESP_PENDING. */
size_t msg_stream_room(struct msg_stream *stream, uint8_t **out);
void msg_stream_arrived(struct msg_stream *stream, size_t n);
/*
 * The next message; it borrows from the stream until the next call. ESP_PENDING: none yet; ESP_ECORRUPT: the bytes are
 * no message of the other end, and the connection is to be closed.
 */
ESP_CHECKED enum esp_status msg_stream_take(struct msg_stream *stream, struct hub_msg *out);

#endif
