#include "wire/control_msg.h"

#include <string.h>

#include "espalier/types.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"

enum {
	AT_TYPE = 0,
	AT_FROM = 4,
	AT_ABOUT = 8,
	AT_CHANNEL = 12,
	AT_FIRST = 16,
	AT_STATUS = 20,
	AT_SEQUENCE = 24,
	AT_PEER = 32,
	AT_NOTE = 36,
	AT_TEXT = AT_NOTE + CALL_NOTE_BYTES,
	AT_ZERO = AT_TEXT + CONTROL_TEXT,
	AT_NUMBER = AT_ZERO + 4,
	AT_HEARD = AT_NUMBER + 8,
	AT_CRC = AT_HEARD + 8,
};
_Static_assert(AT_CRC + 4 == CONTROL_BYTES, "the layout in control_msg.h");

void call_note_encode(const struct call_note *note, uint8_t out[CALL_NOTE_BYTES])
{
	out[0] = note->collective;
	out[1] = note->type;
	out[2] = note->op;
	out[3] = note->flags;
	bytes_put32(out + 4, note->root);
	bytes_put64(out + 8, note->count);
	bytes_put64(out + 16, note->factor);
	bytes_put64(out + 24, note->key);
	bytes_put64(out + 32, note->sequence);
	bytes_put32(out + 40, note->shape);
	bytes_put32(out + 44, note->plan);
}

void call_note_decode(const uint8_t in[CALL_NOTE_BYTES], struct call_note *out)
{
	*out = (struct call_note){
		.collective = in[0],
		.type = in[1],
		.op = in[2],
		.flags = in[3],
		.root = bytes_get32(in + 4),
		.count = bytes_get64(in + 8),
		.factor = bytes_get64(in + 16),
		.key = bytes_get64(in + 24),
		.sequence = bytes_get64(in + 32),
		.shape = bytes_get32(in + 40),
		.plan = bytes_get32(in + 44),
	};
}

uint32_t call_note_digest(const struct call_note *note)
{
	uint8_t bytes[CALL_NOTE_BYTES];

	call_note_encode(note, bytes);
	return crc32c(0, bytes, sizeof(bytes));
}

static void put_text(const char *text, uint8_t out[CONTROL_TEXT])
{
	size_t at = 0;

	for (; at + 1 < CONTROL_TEXT && text[at]; at++)
		out[at] = (uint8_t)text[at] < 0x20 || text[at] == 0x7f ? '?' : (uint8_t)text[at];
	memset(out + at, 0, CONTROL_TEXT - at);
}

void control_encode(const struct control_msg *msg, uint8_t out[CONTROL_BYTES])
{
	memset(out, 0, CONTROL_BYTES);
	out[AT_TYPE] = msg->type;
	bytes_put32(out + AT_FROM, msg->from);
	bytes_put32(out + AT_ABOUT, msg->about);
	bytes_put32(out + AT_CHANNEL, msg->channel);
	bytes_put32(out + AT_FIRST, msg->first);
	bytes_put32(out + AT_STATUS, (uint32_t)msg->status);
	bytes_put64(out + AT_SEQUENCE, msg->sequence);
	bytes_put32(out + AT_PEER, msg->peer);
	call_note_encode(&msg->note, out + AT_NOTE);
	if (msg->type == CONTROL_PIECE)
		memcpy(out + AT_TEXT, msg->text, CONTROL_TEXT);
	else
		put_text(msg->text, out + AT_TEXT);
	bytes_put64(out + AT_NUMBER, msg->number);
	bytes_put64(out + AT_HEARD, msg->heard);
	bytes_put32(out + AT_CRC, crc32c(0, out, AT_CRC));
}

static bool text_is_good(const uint8_t *text)
{
	size_t length = strnlen((const char *)text, CONTROL_TEXT);

	if (length == CONTROL_TEXT)
		return false;
	for (size_t i = 0; i < CONTROL_TEXT; i++) {
		if (i < length ? text[i] < 0x20 || text[i] == 0x7f : text[i] != 0)
			return false;
	}
	return true;
}

bool control_decode(const uint8_t in[CONTROL_BYTES], struct control_msg *out)
{
	int32_t status = (int32_t)bytes_get32(in + AT_STATUS);

	if (bytes_get32(in + AT_CRC) != crc32c(0, in, AT_CRC) || bytes_get32(in + AT_ZERO) != 0)
		return false;
	if (in[AT_TYPE] == 0 || in[AT_TYPE] > CONTROL_TYPE_LAST || in[1] || in[2] || in[3])
		return false;
	if (status > 0 || (in[AT_TYPE] != CONTROL_PIECE && !text_is_good(in + AT_TEXT)))
		return false;
	*out = (struct control_msg){
		.type = in[AT_TYPE],
		.from = bytes_get32(in + AT_FROM),
		.about = bytes_get32(in + AT_ABOUT),
		.channel = bytes_get32(in + AT_CHANNEL),
		.first = bytes_get32(in + AT_FIRST),
		.status = status,
		.sequence = bytes_get64(in + AT_SEQUENCE),
		.peer = bytes_get32(in + AT_PEER),
		.number = bytes_get64(in + AT_NUMBER),
		.heard = bytes_get64(in + AT_HEARD),
	};
	call_note_decode(in + AT_NOTE, &out->note);
	memcpy(out->text, in + AT_TEXT, CONTROL_TEXT);
	return true;
}
