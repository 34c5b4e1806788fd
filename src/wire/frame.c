#include "wire/frame.h"

#include "wire/bytes.h"
#include "wire/crc32c.h"

#define SEALED_BYTES (FRAME_BYTES - 4) /* covered by the head's checksum */

void frame_encode(const struct frame *frame, uint8_t out[FRAME_BYTES])
{
	out[0] = frame->type;
	out[1] = frame->flags;
	bytes_put16(out + 2, frame->channel);
	bytes_put32(out + 4, frame->index);
	bytes_put32(out + 8, frame->ack);
	bytes_put32(out + 12, frame->call);
	bytes_put32(out + 16, frame->bytes);
	bytes_put32(out + 20, frame->data_crc);
	bytes_put32(out + 24, frame->shift);
	bytes_put32(out + SEALED_BYTES, crc32c(0, out, SEALED_BYTES));
}

uint32_t frame_claims(const uint8_t in[FRAME_BYTES])
{
	return bytes_get32(in + 16);
}

bool frame_decode(const uint8_t in[FRAME_BYTES], struct frame *out)
{
	struct frame frame = {
		.type = in[0],
		.flags = in[1],
		.channel = bytes_get16(in + 2),
		.index = bytes_get32(in + 4),
		.ack = bytes_get32(in + 8),
		.call = bytes_get32(in + 12),
		.bytes = bytes_get32(in + 16),
		.data_crc = bytes_get32(in + 20),
		.shift = in[24],
	};

	if (bytes_get32(in + SEALED_BYTES) != crc32c(0, in, SEALED_BYTES))
		return false;
	if (bytes_get32(in + 24) != frame.shift || frame.shift >= FRAME_SHIFTS || (frame.shift && !frame.bytes))
		return false;
	if (frame.type < FRAME_DATA || frame.type > FRAME_COUNT || (frame.flags & ~FRAME_CHECKED))
		return false;
	if (frame.type == FRAME_CREDIT && (frame.flags || frame.index || frame.call || frame.bytes))
		return false;
	if (frame.type >= FRAME_SWITCH && (frame.flags || frame.channel || frame.call || frame.bytes))
		return false;
	if (frame.type == FRAME_SWITCH && (frame.index || frame.ack))
		return false;
	if (!(frame.flags & FRAME_CHECKED) && frame.data_crc)
		return false;
	*out = frame;
	return true;
}
