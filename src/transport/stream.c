#include "transport/stream.h"

#include <assert.h>
#include <stddef.h>

#include "wire/crc32c.h"

struct transport_room stream_room(struct stream_reader *reader, const struct transport_user *user, void *context,
                                  uint32_t peer)
{
	if (reader->body_left == 0)
		return (struct transport_room){reader->header + reader->header_have, FRAME_BYTES - reader->header_have};
	struct transport_room room = user->room(context, peer, reader->frame.channel);
	if (room.bytes > reader->body_left)
		room.bytes = reader->body_left;
	reader->at = room.at;
	return room;
}

/* All bytes of the message are there. */
static enum esp_status body_done(struct stream_reader *reader, const struct transport_user *user, void *context,
                                 uint32_t peer)
{
	if ((reader->frame.flags & FRAME_CHECKED) && reader->crc != reader->frame.data_crc)
		return ESP_ECORRUPT;
	user->ended(context, peer, reader->frame.channel);
	return ESP_OK;
}

/* A whole header is there: tell the user what it announces. */
static enum esp_status header_done(struct stream_reader *reader, const struct transport_user *user, void *context,
                                   uint32_t peer)
{
	struct frame *frame = &reader->frame;

	reader->header_have = 0;
	if (!frame_decode(reader->header, frame))
		return ESP_ECORRUPT;
	struct transport_message message = {
		.is_credit = frame->type == FRAME_CREDIT,
		.channel = frame->channel,
		.index = frame->index,
		.ack = frame->ack,
		.bytes = frame->bytes,
	};
	if (message.is_credit)
		return user->credit(context, peer, &message);
	enum esp_status status = user->begin(context, peer, &message);
	reader->crc = 0;
	reader->body_left = frame->bytes;
	return status == ESP_OK && frame->bytes == 0 ? body_done(reader, user, context, peer) : status;
}

static enum esp_status body_arrived(struct stream_reader *reader, const struct transport_user *user, void *context,
                                    uint32_t peer, uint32_t bytes)
{
	assert(bytes <= reader->body_left);
	if ((reader->frame.flags & FRAME_CHECKED) && reader->at)
		reader->crc = crc32c(reader->crc, reader->at, bytes);
	reader->body_left -= bytes;
	user->arrived(context, peer, reader->frame.channel, bytes);
	return reader->body_left == 0 ? body_done(reader, user, context, peer) : ESP_OK;
}

enum esp_status stream_arrived(struct stream_reader *reader, const struct transport_user *user, void *context,
                               uint32_t peer, uint32_t bytes)
{
	if (reader->body_left > 0)
		return body_arrived(reader, user, context, peer, bytes);
	assert(bytes <= FRAME_BYTES - reader->header_have);
	reader->header_have += bytes;
	if (reader->header_have < FRAME_BYTES)
		return ESP_OK;
	return header_done(reader, user, context, peer);
}

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
		.bytes = message->is_credit ? 0 : message->bytes,
	};
	if (writer->checked && !message->is_credit && message->data) {
		frame.flags = FRAME_CHECKED;
		frame.data_crc = crc32c(0, message->data, message->bytes);
	}
	frame_encode(&frame, writer->header);
	writer->done = 0;
	writer->busy = true;
	return true;
}

static uint32_t total_bytes(const struct stream_writer *writer)
{
	return FRAME_BYTES + (writer->message.is_credit ? 0 : writer->message.bytes);
}

unsigned stream_pending(struct stream_writer *writer, const struct transport_user *user, void *context, uint32_t peer,
                        struct stream_bytes out[2])
{
	unsigned count = 0;

	if (!pull(writer, user, context, peer))
		return 0;
	uint32_t total = total_bytes(writer), body_done = 0;
	if (writer->done < FRAME_BYTES)
		out[count++] = (struct stream_bytes){writer->header + writer->done, FRAME_BYTES - writer->done};
	else
		body_done = writer->done - FRAME_BYTES;
	if (body_done < total - FRAME_BYTES) {
		const uint8_t *data = writer->message.data;

		out[count++] = (struct stream_bytes){data ? data + body_done : NULL, total - FRAME_BYTES - body_done};
	}
	return count;
}

bool stream_left(struct stream_writer *writer, uint32_t bytes)
{
	writer->done += bytes;
	assert(writer->done <= total_bytes(writer));
	if (writer->done < total_bytes(writer))
		return false;
	writer->busy = false;
	return true;
}
