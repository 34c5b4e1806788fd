#include "recorder.h"

#include <stdlib.h>

#include "base/check.h"
#include "wire/crc32c.h"

static uint8_t pattern[2 * RECORDER_MOST];

static void pattern_make(void)
{
	uint32_t word = 1;

	for (uint32_t i = 0; i < sizeof(pattern); i++) {
		word = word * 1664525u + 1013904223u;
		pattern[i] = (uint8_t)(word >> 24);
	}
}

static const uint8_t *message_data(uint32_t index)
{
	if (pattern[0] == pattern[1])
		pattern_make();
	return pattern + index * 7919u % RECORDER_MOST;
}

static uint32_t message_bytes(uint32_t stride, uint32_t index)
{
	return index * stride % (RECORDER_MOST + 1);
}

void recorder_open(struct recorder *recorder, uint32_t stride)
{
	*recorder = (struct recorder){.stride = stride};
	for (uint32_t i = 0; i < RECORDER_PEERS; i++) {
		recorder->peers[i].room = malloc(RECORDER_MOST);
		CHECK(recorder->peers[i].room);
	}
}

void recorder_close(struct recorder *recorder)
{
	for (uint32_t i = 0; i < RECORDER_PEERS; i++)
		free(recorder->peers[i].room);
}

void recorder_send(struct recorder *recorder, uint32_t peer, uint32_t count)
{
	recorder->peers[peer].to_send += count;
	recorder->peers[peer].ready = true;
}

uint32_t recorder_frame(uint32_t stride, uint32_t index, bool checked, uint8_t *out)
{
	uint32_t bytes = message_bytes(stride, index);
	struct frame frame = {.type = FRAME_DATA, .channel = 1, .index = index, .bytes = bytes};

	if (checked) {
		frame.flags = FRAME_CHECKED;
		frame.data_crc = crc32c(0, message_data(index), bytes);
	}
	frame_encode(&frame, out);
	memcpy(out + FRAME_BYTES, message_data(index), bytes);
	memset(out + FRAME_BYTES + bytes, 0, frame_filling(bytes));
	return FRAME_BYTES + bytes + frame_filling(bytes);
}

void recorder_dial(void *context, uint32_t peer)
{
	struct recorder *recorder = context;
	(void)peer;

	recorder->dials++;
}

/* ---- what a transport calls ---- */

static struct recorder_peer *peer_of(void *user, uint32_t number)
{
	struct recorder *recorder = user;
	struct recorder_peer *peer = &recorder->peers[number];

	CHECK(number < RECORDER_PEERS);
	CHECK(recorder->failed == ESP_OK); /* nothing is asked of one who has failed */
	CHECK(peer->lost == 0);            /* nor for a peer that was lost           */
	return peer;
}

static bool user_next(void *user, uint32_t number, struct transport_message *out)
{
	struct recorder *recorder = user;
	struct recorder_peer *peer = peer_of(user, number);

	if (peer->pulled == peer->to_send)
		return false;
	*out = (struct transport_message){
		.channel = 1,
		.index = peer->pulled,
		.bytes = message_bytes(recorder->stride, peer->pulled),
		.data = recorder->without_memory ? NULL : message_data(peer->pulled),
		.cookie = peer,
	};
	peer->pulled++;
	return true;
}

static uint32_t user_ready(void *user)
{
	struct recorder *recorder = user;

	for (uint32_t i = 0; i < RECORDER_PEERS; i++) {
		if (recorder->peers[i].ready) {
			recorder->peers[i].ready = false;
			return i;
		}
	}
	return UINT32_MAX;
}

static void user_sent(void *user, uint32_t number, uint16_t channel, void *cookie)
{
	struct recorder_peer *peer = peer_of(user, number);

	CHECK(cookie == peer && channel == 1);
	peer->sent++;
	CHECK(peer->sent <= peer->pulled);
}

static enum esp_status user_begin(void *user, uint32_t number, const struct transport_message *message)
{
	struct recorder *recorder = user;
	struct recorder_peer *peer = peer_of(user, number);

	if (message->channel != 1 || message->index != peer->begun ||
	    message->bytes != message_bytes(recorder->stride, message->index))
		return ESP_ECORRUPT;
	CHECK(peer->begun == peer->ended);
	peer->begun++;
	peer->have = 0;
	peer->arriving = *message;
	return ESP_OK;
}

static struct transport_room user_room(void *user, uint32_t number, uint16_t channel)
{
	struct recorder *recorder = user;
	struct recorder_peer *peer = peer_of(user, number);

	CHECK(channel == 1 && peer->have < peer->arriving.bytes);
	/* Now and then less than is to come, as staging is. */
	uint32_t room = peer->arriving.index % 3 == 2 ? 1000 : peer->arriving.bytes - peer->have;
	return (struct transport_room){recorder->without_memory ? NULL : peer->room + peer->have,
	                               room < RECORDER_MOST - peer->have ? room : RECORDER_MOST - peer->have};
}

static void user_arrived(void *user, uint32_t number, uint16_t channel, uint32_t bytes)
{
	struct recorder_peer *peer = peer_of(user, number);

	CHECK(channel == 1 && bytes > 0);
	peer->have += bytes;
	CHECK(peer->have <= peer->arriving.bytes);
}

static void user_ended(void *user, uint32_t number, uint16_t channel)
{
	struct recorder *recorder = user;
	struct recorder_peer *peer = peer_of(user, number);

	CHECK(channel == 1);
	CHECK_U64(peer->have, peer->arriving.bytes);
	if (!recorder->without_memory)
		CHECK(memcmp(peer->room, message_data(peer->arriving.index), peer->have) == 0);
	peer->ended++;
}

static enum esp_status user_credit(void *user, uint32_t number, const struct transport_message *message)
{
	CHECK(message->is_credit);
	peer_of(user, number)->credits++;
	return ESP_OK;
}

static void user_lost(void *user, uint32_t number, enum esp_status why)
{
	struct recorder *recorder = user;
	struct recorder_peer *peer = peer_of(user, number);

	peer->lost++;
	peer->why = why;
	if (!recorder->goes_on)
		recorder->failed = why;
}

static enum esp_status user_failed(void *user)
{
	const struct recorder *recorder = user;

	return recorder->failed;
}

static uint32_t recorder_awaits(void *user)
{
	const struct recorder *recorder = user;

	return recorder->has_awaited ? recorder->awaited : UINT32_MAX;
}

const struct transport_user recorder_user = {
	.awaits = recorder_awaits,
	.next = user_next,
	.ready = user_ready,
	.sent = user_sent,
	.begin = user_begin,
	.room = user_room,
	.arrived = user_arrived,
	.ended = user_ended,
	.credit = user_credit,
	.lost = user_lost,
	.failed = user_failed,
};
