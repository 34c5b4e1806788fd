#include "transport/stream.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "wire/crc32c.h"

/* ---- incoming ---- */

static const uint8_t zeros[FRAME_SHIFTS];
static_assert(FRAME_SHIFTS == TRANSPORT_SHIFTS, "all of them can be told, and no others");

static uint32_t header_left(const struct stream_reader *reader)
{
	return reader->filling + FRAME_BYTES - reader->header_have;
}

bool stream_is_between(const struct stream_reader *reader)
{
	return reader->body_left == 0 && reader->header_have <= reader->filling;
}

struct transport_room stream_room(struct stream_reader *reader, const struct transport_user *user, void *context,
                                  uint32_t peer)
{
	if (reader->body_left == 0)
		return (struct transport_room){reader->header + reader->header_have, header_left(reader)};
	if (reader->shift_left > 0) /* the header is not needed before the next message */
		return (struct transport_room){reader->header, reader->shift_left};
	struct transport_room room = {NULL, reader->body_left};
	if (!reader->dropping)
		room = user->room(context, peer, reader->frame.channel);
	if (room.bytes > reader->body_left)
		room.bytes = reader->body_left;
	reader->at = room.at;
	reader->unseen |= !room.at;
	return room;
}

/* All bytes of the message are there. */
static enum esp_status body_done(struct stream_reader *reader, const struct transport_user *user, void *context,
                                 uint32_t peer)
{
	if (reader->dropping)
		return ESP_OK;
	if ((reader->frame.flags & FRAME_CHECKED) && !reader->unseen && reader->crc != reader->frame.data_crc)
		return ESP_ECORRUPT;
	user->ended(context, peer, reader->frame.channel);
	return ESP_OK;
}

/* A whole header is there: tell the user what it announces. */
static enum esp_status header_done(struct stream_reader *reader, const struct transport_user *user, void *context,
                                   uint32_t peer)
{
	struct frame *frame = &reader->frame;

	if (memcmp(reader->header, zeros, reader->filling) != 0 || !frame_decode(reader->header + reader->filling, frame) ||
	    frame->type > FRAME_CREDIT)
		return ESP_ECORRUPT;
	reader->header_have = 0;
	reader->filling = frame_filling(frame->shift + frame->bytes);
	struct transport_message message = {
		.is_credit = frame->type == FRAME_CREDIT,
		.channel = frame->channel,
		.index = frame->index,
		.ack = frame->ack,
		.call = frame->call,
		.bytes = frame->bytes,
		.shift = frame->shift,
	};
	if (message.is_credit)
		return user->credit(context, peer, &message);
	enum esp_status status = user->begin(context, peer, &message);
	reader->crc = 0;
	reader->unseen = false;
	reader->dropping = status == ESP_PENDING;
	reader->shift_left = frame->shift;
	reader->body_left = frame->bytes;
	if (status != ESP_OK && status != ESP_PENDING)
		return status;
	return frame->bytes == 0 ? body_done(reader, user, context, peer) : ESP_OK;
}

static enum esp_status shift_arrived(struct stream_reader *reader, uint32_t bytes)
{
	assert(bytes <= reader->shift_left);
	reader->shift_left -= bytes;
	return memcmp(reader->header, zeros, bytes) == 0 ? ESP_OK : ESP_ECORRUPT;
}

static enum esp_status body_arrived(struct stream_reader *reader, const struct transport_user *user, void *context,
                                    uint32_t peer, uint32_t bytes)
{
	assert(bytes <= reader->body_left);
	if ((reader->frame.flags & FRAME_CHECKED) && reader->at)
		reader->crc = crc32c(reader->crc, reader->at, bytes);
	reader->body_left -= bytes;
	if (!reader->dropping)
		user->arrived(context, peer, reader->frame.channel, bytes);
	return reader->body_left == 0 ? body_done(reader, user, context, peer) : ESP_OK;
}

enum esp_status stream_arrived(struct stream_reader *reader, const struct transport_user *user, void *context,
                               uint32_t peer, uint32_t bytes)
{
	if (reader->shift_left > 0)
		return shift_arrived(reader, bytes);
	if (reader->body_left > 0)
		return body_arrived(reader, user, context, peer, bytes);
	assert(bytes <= header_left(reader));
	reader->header_have += bytes;
	if (header_left(reader) > 0)
		return ESP_OK;
	return header_done(reader, user, context, peer);
}

/* All that came of the message before it is over, and was what it has to be. */
static bool is_at_head(const struct stream_reader *reader)
{
	return reader->body_left == 0 && reader->header_have == reader->filling &&
	       memcmp(reader->header, zeros, reader->filling) == 0;
}

/* Bytes of the filling behind the message before that are still to come. */
static uint32_t filling_left(const struct stream_reader *reader)
{
	return reader->body_left == 0 && reader->shift_left == 0 && reader->header_have < reader->filling
	           ? reader->filling - reader->header_have
	           : 0;
}

/* Whatever is wrong with it is found out the usual way. */
static bool is_whole(const uint8_t *at, uint32_t bytes, struct frame *out)
{
	/* A look at what it says of itself, which is much cheaper than to find out whether it is true. */
	if (bytes < FRAME_BYTES || frame_claims(at) > bytes - FRAME_BYTES || (uintptr_t)at % TRANSPORT_ALIGN != 0)
		return false;
	if (!frame_decode(at, out) || out->type != FRAME_DATA || out->shift != 0)
		return false;
	uint32_t filling = frame_filling(out->bytes);
	const uint8_t *data = at + FRAME_BYTES;

	return filling <= bytes - FRAME_BYTES - out->bytes && memcmp(data + out->bytes, zeros, filling) == 0 &&
	       (!(out->flags & FRAME_CHECKED) || crc32c(0, data, out->bytes) == out->data_crc);
}

/* The next message, if nothing is under way and it lies here whole: how many bytes it has. 0: it goes the usual way. */
static uint32_t take_whole(struct stream_reader *reader, const struct transport_user *user, void *context,
                           uint32_t peer, const uint8_t *at, uint32_t bytes, enum esp_status *out_status)
{
	struct frame frame;

	if (!user->take || !is_at_head(reader) || !is_whole(at, bytes, &frame))
		return 0;
	struct transport_message message = {
		.channel = frame.channel,
		.index = frame.index,
		.ack = frame.ack,
		.call = frame.call,
		.bytes = frame.bytes,
		.data = at + FRAME_BYTES,
	};
	reader->filling = reader->header_have = 0;
	reader->frame = frame;
	enum esp_status status = user->take(context, peer, &message);
	*out_status = status == ESP_PENDING ? ESP_OK : status;
	return FRAME_BYTES + frame.bytes + frame_filling(frame.bytes);
}

enum esp_status stream_feed(struct stream_reader *reader, const struct transport_user *user, void *context,
                            uint32_t peer, const uint8_t *at, uint32_t bytes)
{
	enum esp_status status = ESP_OK;

	for (const uint8_t *end = at + bytes; status == ESP_OK && at < end;) {
		uint32_t left = (uint32_t)(end - at), moved = take_whole(reader, user, context, peer, at, left, &status);

		if (moved == 0) {
			struct transport_room room = stream_room(reader, user, context, peer);

			assert(room.bytes > 0);
			moved = room.bytes < left ? room.bytes : left;
			if (filling_left(reader) > 0 && moved > filling_left(reader))
				moved = filling_left(reader); /* the bytes that follow it may be whole */
			if (room.at)
				memcpy(room.at, at, moved);
			status = stream_arrived(reader, user, context, peer, moved);
		}
		at += moved;
	}
	return status;
}

void stream_reader_forget(struct stream_reader *reader, uint16_t channel)
{
	if (reader->body_left > 0 && reader->frame.channel == channel)
		reader->dropping = true;
}

/* ---- outgoing ---- */

static bool pull(struct stream_writer *writer, const struct transport_user *user, void *context, uint32_t peer)
{
	if (writer->busy)
		return true;
	if (!user->next(context, peer, &writer->message))
		return false;
	const struct transport_message *message = &writer->message;
	struct frame frame = {
		.type = message->is_credit ? FRAME_CREDIT : FRAME_DATA,
		.channel = message->channel,
		.index = message->is_credit ? 0 : message->index,
		.ack = message->ack,
		.call = message->is_credit ? 0 : message->call,
		.bytes = message->is_credit ? 0 : message->bytes,
		.shift = message->is_credit ? 0 : transport_shift(message->data, message->bytes),
	};
	if (writer->checked && !message->is_credit && message->data) {
		frame.flags = FRAME_CHECKED;
		frame.data_crc = crc32c(0, message->data, message->bytes);
	}
	frame_encode(&frame, writer->header);
	memset(writer->header + FRAME_BYTES, 0, frame.shift);
	writer->header_bytes = FRAME_BYTES + frame.shift;
	writer->done = 0;
	writer->busy = true;
	return true;
}

static uint32_t body_bytes(const struct stream_writer *writer)
{
	return writer->message.is_credit ? 0 : writer->message.bytes;
}

/* How much of the data has left. */
static uint32_t body_gone(const struct stream_writer *writer)
{
	uint32_t head = writer->header_bytes, body = body_bytes(writer);
	uint32_t beyond_head = writer->done < head ? 0 : writer->done - head;

	return beyond_head < body ? beyond_head : body;
}

static uint32_t total_bytes(const struct stream_writer *writer)
{
	uint32_t bytes = writer->header_bytes + body_bytes(writer);

	return bytes + frame_filling(bytes);
}

unsigned stream_pending(struct stream_writer *writer, const struct transport_user *user, void *context, uint32_t peer,
                        struct stream_bytes out[STREAM_SPANS])
{
	unsigned count = 0;

	if (!pull(writer, user, context, peer))
		return 0;
	uint32_t body = body_bytes(writer), at = body_gone(writer);
	if (writer->done < writer->header_bytes)
		out[count++] = (struct stream_bytes){writer->header + writer->done, writer->header_bytes - writer->done};
	if (at < body) {
		const uint8_t *data = writer->message.data;

		if (writer->copy)
			data = writer->copy + (at - writer->copy_from);
		else if (data)
			data += at;
		out[count++] = (struct stream_bytes){data, body - at};
	}
	uint32_t left = total_bytes(writer) - writer->done, filling = frame_filling(writer->header_bytes + body);
	if (filling > 0)
		out[count++] = (struct stream_bytes){zeros, left < filling ? left : filling};
	return count;
}

enum stream_whole stream_pending_whole(struct stream_writer *writer, const struct transport_user *user, void *context,
                                       uint32_t peer, uint8_t *out, uint32_t room, uint32_t *out_bytes)
{
	if (!pull(writer, user, context, peer))
		return STREAM_NONE;
	uint32_t head = writer->header_bytes, body = body_bytes(writer), total = total_bytes(writer);
	if (writer->done > 0 || total > room || (body > 0 && !writer->message.data))
		return STREAM_PARTED;
	memcpy(out, writer->header, head);
	if (body > 0)
		memcpy(out + head, writer->message.data, body);
	memset(out + head + body, 0, total - head - body);
	*out_bytes = total;
	return STREAM_WHOLE;
}

/* The message that was forgotten is over. */
static void forgotten_ends(struct stream_writer *writer)
{
	free(writer->copy);
	writer->copy = NULL;
	writer->forgotten = false;
}

enum stream_progress stream_left(struct stream_writer *writer, uint32_t bytes)
{
	uint32_t total = total_bytes(writer);

	writer->done += bytes;
	assert(writer->done <= total);
	if (writer->done < total)
		return STREAM_GOES_ON;
	writer->busy = false;
	if (!writer->forgotten)
		return STREAM_SENT;
	forgotten_ends(writer);
	return STREAM_GONE;
}

bool stream_writer_forget(struct stream_writer *writer, uint16_t channel)
{
	if (!writer->busy || writer->forgotten || writer->message.channel != channel)
		return true;
	if (writer->done == 0) {
		writer->busy = false;
		return true;
	}
	uint32_t from = body_gone(writer), left = body_bytes(writer) - from;
	writer->forgotten = true;
	if (left > 0 && writer->message.data) {
		writer->copy = malloc(left);
		if (!writer->copy)
			return false;
		memcpy(writer->copy, (const uint8_t *)writer->message.data + from, left);
		writer->copy_from = from;
	}
	writer->message.data = NULL;
	writer->message.cookie = NULL;
	return true;
}

void stream_writer_fini(struct stream_writer *writer)
{
	forgotten_ends(writer);
	writer->busy = false;
}
