#include "wire/frame.h"

#include "wire/crc32c.h"

static void put32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

void frame_encode(const struct frame *frame, uint8_t out[FRAME_BYTES])
{
	out[0] = frame->type;
	out[1] = frame->flags;
	out[2] = (uint8_t)frame->channel;
	out[3] = (uint8_t)(frame->channel >> 8);
	put32(out + 4, frame->index);
	put32(out + 8, frame->ack);
	put32(out + 12, frame->bytes);
	put32(out + 16, frame->data_crc);
	put32(out + 20, crc32c(0, out, 20));
}

bool frame_decode(const uint8_t in[FRAME_BYTES], struct frame *out)
{
	struct frame frame = {
		.type = in[0],
		.flags = in[1],
		.channel = (uint16_t)(in[2] | in[3] << 8),
		.index = get32(in + 4),
		.ack = get32(in + 8),
		.bytes = get32(in + 12),
		.data_crc = get32(in + 16),
	};

	if (get32(in + 20) != crc32c(0, in, 20))
		return false;
	if ((frame.type != FRAME_DATA && frame.type != FRAME_CREDIT) || (frame.flags & ~FRAME_CHECKED))
		return false;
	if (frame.type == FRAME_CREDIT && (frame.flags || frame.index || frame.bytes))
		return false;
	if (!(frame.flags & FRAME_CHECKED) && frame.data_crc)
		return false;
	*out = frame;
	return true;
}
