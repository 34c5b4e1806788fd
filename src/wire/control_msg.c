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
	AT_STATUS = 20, /* from here on the body, see struct flat */
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
	out[3] = (uint8_t)(note->flags | note->numerics << 4);
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
		.flags = (uint8_t)(in[3] & 15),
		.numerics = in[3] >> 4,
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

/* ---- bodies ---- */

/* Where the fields of bodies lie: a body has some of them, the rest of it is zero. */
struct flat {
	int32_t status;
	uint64_t number;
	uint32_t rank;
	struct call_note note;
	char text[CONTROL_TEXT];
	bool is_binary; /* text is any bytes */
};

static void copy_text(char out[CONTROL_TEXT], const char *text)
{
	memcpy(out, text, CONTROL_TEXT);
}

/* Private to the two functions below, which are each other's reverse, type by type. */
static void flatten(const struct control_msg *msg, struct flat *out)
{
	*out = (struct flat){.rank = UINT32_MAX};
	switch ((enum control_type)msg->type) {
	case CONTROL_LEFT:
		out->note = msg->left.last;
		copy_text(out->text, msg->left.text);
		break;
	case CONTROL_DEAD:
	case CONTROL_SILENT:
		copy_text(out->text, msg->loss.text);
		break;
	case CONTROL_FAILED:
		out->status = msg->failed.status;
		out->rank = msg->failed.other;
		out->number = msg->failed.other_sequence;
		out->note = msg->failed.note;
		copy_text(out->text, msg->failed.text);
		break;
	case CONTROL_ASK:
	case CONTROL_READY:
	case CONTROL_GO:
	case CONTROL_LETTER:
	case CONTROL_FETCH:
		out->status = msg->call.status;
		out->note = msg->call.note;
		break;
	case CONTROL_ABSENT:
		out->number = msg->absent.sequence;
		out->note.flags = msg->absent.is_keyed ? CALL_KEYED : 0;
		out->note.key = msg->absent.key;
		out->note.count = msg->absent.second;
		break;
	case CONTROL_BEAT:
		out->number = msg->beat.silence_ns;
		out->note.flags = msg->beat.is_last;
		break;
	case CONTROL_ECHO:
		copy_text(out->text, msg->echo.who);
		break;
	case CONTROL_PIECE:
		out->number = msg->piece.at;
		out->note.count = msg->piece.whole;
		out->is_binary = true;
		memcpy(out->text, msg->piece.bytes, CONTROL_PIECE_BYTES);
		break;
	case CONTROL_INVITE:
		out->rank = msg->invite.size;
		out->number = msg->invite.epoch;
		copy_text(out->text, msg->invite.leader);
		break;
	case CONTROL_DIALS:
		out->number = msg->dials.at_ns;
		break;
	case CONTROL_OFF:
		out->status = msg->off.status;
		out->rank = msg->off.culprit;
		out->number = msg->off.call;
		copy_text(out->text, msg->off.text);
		break;
	case CONTROL_HEARD:
		break;
	case CONTROL_DIAL:
	case CONTROL_RENEW:
		out->number = msg->lane.lane;
		break;
	case CONTROL_MOVE:
		out->number = msg->rail.rail;
		break;
	case CONTROL_REFUSE:
		copy_text(out->text, msg->refuse.text);
		break;
	}
}

static void unflatten(const struct flat *in, struct control_msg *out)
{
	switch ((enum control_type)out->type) {
	case CONTROL_LEFT:
		out->left.last = in->note;
		copy_text(out->left.text, in->text);
		break;
	case CONTROL_DEAD:
	case CONTROL_SILENT:
		copy_text(out->loss.text, in->text);
		break;
	case CONTROL_FAILED:
		out->failed.status = in->status;
		out->failed.other = in->rank;
		out->failed.other_sequence = in->number;
		out->failed.note = in->note;
		copy_text(out->failed.text, in->text);
		break;
	case CONTROL_ASK:
	case CONTROL_READY:
	case CONTROL_GO:
	case CONTROL_LETTER:
	case CONTROL_FETCH:
		out->call.status = in->status;
		out->call.note = in->note;
		break;
	case CONTROL_ABSENT:
		out->absent = (struct ctl_absent){in->number, in->note.flags & CALL_KEYED, in->note.key, in->note.count};
		break;
	case CONTROL_BEAT:
		out->beat = (struct ctl_beat){in->note.flags & 1, in->number};
		break;
	case CONTROL_ECHO:
		copy_text(out->echo.who, in->text);
		break;
	case CONTROL_PIECE:
		out->piece.at = in->number;
		out->piece.whole = in->note.count;
		memcpy(out->piece.bytes, in->text, CONTROL_PIECE_BYTES);
		break;
	case CONTROL_INVITE:
		out->invite.size = in->rank;
		out->invite.epoch = in->number;
		copy_text(out->invite.leader, in->text);
		break;
	case CONTROL_DIALS:
		out->dials.at_ns = in->number;
		break;
	case CONTROL_OFF:
		out->off.status = in->status;
		out->off.culprit = in->rank;
		out->off.call = in->number;
		copy_text(out->off.text, in->text);
		break;
	case CONTROL_HEARD:
		break;
	case CONTROL_DIAL:
	case CONTROL_RENEW:
		out->lane.lane = in->number < UINT32_MAX ? (uint32_t)in->number : UINT32_MAX;
		break;
	case CONTROL_MOVE:
		out->rail.rail = in->number < UINT32_MAX ? (uint32_t)in->number : UINT32_MAX;
		break;
	case CONTROL_REFUSE:
		copy_text(out->refuse.text, in->text);
		break;
	}
}

/* Nothing stands where this type has no field: what decodes encodes to the same bytes. */
static bool is_exact(const struct flat *body, const struct control_msg *msg)
{
	uint8_t one[CALL_NOTE_BYTES], other[CALL_NOTE_BYTES];
	struct flat again;

	flatten(msg, &again);
	call_note_encode(&body->note, one);
	call_note_encode(&again.note, other);
	return body->status == again.status && body->number == again.number && body->rank == again.rank &&
	       memcmp(one, other, sizeof(one)) == 0 && memcmp(body->text, again.text, CONTROL_TEXT) == 0;
}

/* ---- the whole ---- */

void control_encode(const struct control_msg *msg, uint8_t out[CONTROL_BYTES])
{
	struct flat body;

	flatten(msg, &body);
	memset(out, 0, CONTROL_BYTES);
	out[AT_TYPE] = msg->type;
	bytes_put32(out + AT_FROM, msg->from);
	bytes_put32(out + AT_ABOUT, msg->about);
	bytes_put32(out + AT_CHANNEL, msg->channel);
	bytes_put32(out + AT_FIRST, msg->first);
	bytes_put32(out + AT_STATUS, (uint32_t)body.status);
	bytes_put64(out + AT_SEQUENCE, body.number);
	bytes_put32(out + AT_PEER, body.rank);
	call_note_encode(&body.note, out + AT_NOTE);
	if (body.is_binary)
		memcpy(out + AT_TEXT, body.text, CONTROL_TEXT);
	else
		put_text(body.text, out + AT_TEXT);
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
	struct flat body = {
		.status = (int32_t)bytes_get32(in + AT_STATUS),
		.number = bytes_get64(in + AT_SEQUENCE),
		.rank = bytes_get32(in + AT_PEER),
	};

	if (bytes_get32(in + AT_CRC) != crc32c(0, in, AT_CRC) || bytes_get32(in + AT_ZERO) != 0)
		return false;
	if (in[AT_TYPE] == 0 || in[AT_TYPE] > CONTROL_TYPE_LAST || in[1] || in[2] || in[3])
		return false;
	if (body.status > 0 || (in[AT_TYPE] != CONTROL_PIECE && !text_is_good(in + AT_TEXT)))
		return false;
	call_note_decode(in + AT_NOTE, &body.note);
	memcpy(body.text, in + AT_TEXT, CONTROL_TEXT);
	struct control_msg msg = {
		.type = in[AT_TYPE],
		.from = bytes_get32(in + AT_FROM),
		.about = bytes_get32(in + AT_ABOUT),
		.channel = bytes_get32(in + AT_CHANNEL),
		.first = bytes_get32(in + AT_FIRST),
		.number = bytes_get64(in + AT_NUMBER),
		.heard = bytes_get64(in + AT_HEARD),
	};
	unflatten(&body, &msg);
	if (!is_exact(&body, &msg))
		return false;
	*out = msg;
	return true;
}
