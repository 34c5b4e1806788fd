#include "wire/control_msg.h"

#include "base/check.h"
#include "base/rng.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"

static struct call_note draw_note(struct rng *rng)
{
	return (struct call_note){
		.collective = (uint8_t)rng_next(rng),
		.type = (uint8_t)rng_next(rng),
		.op = (uint8_t)rng_next(rng),
		.flags = (uint8_t)rng_below(rng, 16),
		.numerics = (uint8_t)rng_below(rng, 16),
		.root = (uint32_t)rng_next(rng),
		.count = rng_next(rng),
		.factor = rng_next(rng),
		.key = rng_next(rng),
		.sequence = rng_next(rng),
		.shape = (uint32_t)rng_next(rng),
		.plan = (uint32_t)rng_next(rng),
	};
}

static void draw_text(struct rng *rng, char out[CONTROL_TEXT])
{
	memset(out, 0, CONTROL_TEXT);
	for (uint64_t i = rng_below(rng, CONTROL_TEXT); i > 0; i--)
		out[i - 1] = (char)(0x20 + rng_below(rng, 0x5f));
}

/* The body of msg->type, all fields of it. */
static void draw_body(struct rng *rng, struct control_msg *msg)
{
	int32_t status = -(int32_t)rng_below(rng, 50);

	switch ((enum control_type)msg->type) {
	case CONTROL_LEFT:
		msg->left.last = draw_note(rng);
		draw_text(rng, msg->left.text);
		break;
	case CONTROL_DEAD:
	case CONTROL_SILENT:
		draw_text(rng, msg->loss.text);
		break;
	case CONTROL_FAILED:
		msg->failed = (struct ctl_failed){.status = status, .other = (uint32_t)rng_next(rng),
		                                  .other_sequence = rng_next(rng), .note = draw_note(rng)};
		draw_text(rng, msg->failed.text);
		break;
	case CONTROL_ASK:
	case CONTROL_READY:
	case CONTROL_GO:
	case CONTROL_LETTER:
	case CONTROL_FETCH:
		msg->call = (struct ctl_call){.note = draw_note(rng), .status = status};
		break;
	case CONTROL_ABSENT:
		msg->absent = (struct ctl_absent){rng_next(rng), rng_chance(rng, 1, 2), rng_next(rng), rng_next(rng)};
		break;
	case CONTROL_BEAT:
		msg->beat = (struct ctl_beat){rng_chance(rng, 1, 2), rng_next(rng)};
		break;
	case CONTROL_ECHO:
		draw_text(rng, msg->echo.who);
		break;
	case CONTROL_PIECE:
		msg->piece.at = rng_next(rng);
		msg->piece.whole = rng_next(rng);
		for (unsigned i = 0; i < CONTROL_PIECE_BYTES; i++)
			msg->piece.bytes[i] = (uint8_t)rng_next(rng);
		break;
	case CONTROL_INVITE:
		msg->invite.size = (uint32_t)rng_next(rng);
		msg->invite.epoch = rng_next(rng);
		draw_text(rng, msg->invite.leader);
		break;
	case CONTROL_DIALS:
		msg->dials.at_ns = rng_next(rng);
		break;
	case CONTROL_OFF:
		msg->off = (struct ctl_off){.call = rng_next(rng), .status = status, .culprit = (uint32_t)rng_next(rng)};
		draw_text(rng, msg->off.text);
		break;
	case CONTROL_HEARD:
		break;
	case CONTROL_DIAL:
	case CONTROL_RENEW:
		msg->lane.lane = (uint32_t)rng_next(rng);
		break;
	case CONTROL_MOVE:
		msg->rail.rail = (uint32_t)rng_next(rng);
		break;
	case CONTROL_REFUSE:
		draw_text(rng, msg->refuse.text);
		break;
	}
}

static void draw(struct rng *rng, struct control_msg *out)
{
	memset(out, 0, sizeof(*out));
	out->type = (uint8_t)(1 + rng_below(rng, CONTROL_TYPE_LAST));
	out->from = (uint32_t)rng_next(rng);
	out->about = (uint32_t)rng_next(rng);
	out->channel = (uint32_t)rng_next(rng);
	out->first = (uint32_t)rng_next(rng);
	out->number = rng_next(rng);
	out->heard = rng_next(rng);
	draw_body(rng, out);
}

/* Every field is decoded as it was encoded, and no other bytes decode to the same message. */
static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 20000; i++) {
		struct control_msg msg, back;
		uint8_t bytes[CONTROL_BYTES], again[CONTROL_BYTES];

		draw(rng, &msg);
		control_encode(&msg, bytes);
		memset(&back, 0, sizeof(back));
		CHECK(control_decode(bytes, &back));
		control_encode(&back, again);
		CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
		CHECK(back.type == msg.type && back.from == msg.from && back.about == msg.about && back.channel == msg.channel);
		CHECK(back.first == msg.first && back.number == msg.number && back.heard == msg.heard);
		if (msg.type == CONTROL_OFF)
			CHECK(back.off.call == msg.off.call && back.off.status == msg.off.status &&
			      back.off.culprit == msg.off.culprit);
		if (msg.type == CONTROL_ABSENT)
			CHECK(back.absent.sequence == msg.absent.sequence && back.absent.is_keyed == msg.absent.is_keyed &&
			      back.absent.key == msg.absent.key && back.absent.second == msg.absent.second);
		if (msg.type == CONTROL_ASK)
			CHECK_U64(call_note_digest(&back.call.note), call_note_digest(&msg.call.note));
	}
}

/* A field that a type does not have is zero on the wire. */
static void foreign_fields_are_refused(void)
{
	struct control_msg msg = {.type = CONTROL_DIAL, .lane.lane = 3}, back;
	uint8_t bytes[CONTROL_BYTES];

	control_encode(&msg, bytes);
	CHECK(control_decode(bytes, &back) && back.lane.lane == 3);
	bytes[36] = 1; /* a call note */
	bytes_put32(bytes + CONTROL_BYTES - 4, crc32c(0, bytes, CONTROL_BYTES - 4));
	CHECK(!control_decode(bytes, &back));
}

static void a_turned_bit_is_noticed(struct rng *rng)
{
	struct control_msg msg, back;
	uint8_t bytes[CONTROL_BYTES];

	draw(rng, &msg);
	control_encode(&msg, bytes);
	for (uint32_t bit = 0; bit < 8 * CONTROL_BYTES; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(!control_decode(bytes, &back));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	CHECK(control_decode(bytes, &back));
}

/* Calls that differ in any field have different digests. */
static void every_field_counts(struct rng *rng)
{
	struct call_note note = draw_note(rng), other;

	for (uint32_t bit = 0; bit < 8 * CALL_NOTE_BYTES; bit++) {
		uint8_t bytes[CALL_NOTE_BYTES];

		call_note_encode(&note, bytes);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		call_note_decode(bytes, &other);
		CHECK(call_note_digest(&other) != call_note_digest(&note));
	}
}

static void text_is_harmless(void)
{
	struct control_msg msg = {.type = CONTROL_DEAD, .loss.text = "one\ntwo\x1b[31m"}, back;
	uint8_t bytes[CONTROL_BYTES];

	control_encode(&msg, bytes);
	CHECK(control_decode(bytes, &back));
	CHECK_STR(back.loss.text, "one?two?[31m");
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	round_trip(&rng);
	a_turned_bit_is_noticed(&rng);
	every_field_counts(&rng);
	foreign_fields_are_refused();
	text_is_harmless();
	return 0;
}
