#include "wire/control_msg.h"

#include "base/check.h"
#include "base/rng.h"

static struct control_msg draw(struct rng *rng)
{
	struct control_msg msg = {
		.type = (uint8_t)(1 + rng_below(rng, CONTROL_TYPE_LAST)),
		.from = (uint32_t)rng_next(rng),
		.about = (uint32_t)rng_next(rng),
		.channel = (uint32_t)rng_next(rng),
		.first = (uint32_t)rng_next(rng),
		.status = -(int32_t)rng_below(rng, 50),
		.sequence = rng_next(rng),
		.peer = (uint32_t)rng_next(rng),
		.number = rng_next(rng),
		.heard = rng_next(rng),
		.note = {
			.collective = (uint8_t)rng_next(rng),
			.type = (uint8_t)rng_next(rng),
			.op = (uint8_t)rng_next(rng),
			.flags = (uint8_t)rng_next(rng),
			.root = (uint32_t)rng_next(rng),
			.count = rng_next(rng),
			.factor = rng_next(rng),
			.key = rng_next(rng),
			.sequence = rng_next(rng),
			.shape = (uint32_t)rng_next(rng),
			.plan = (uint32_t)rng_next(rng),
		},
	};

	for (uint64_t i = rng_below(rng, CONTROL_TEXT); i > 0; i--)
		msg.text[i - 1] = (char)(0x20 + rng_below(rng, 0x5f));
	return msg;
}

/* Every field is decoded as it was encoded, and no other bytes decode to the same message. */
static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 5000; i++) {
		struct control_msg msg = draw(rng), back;
		uint8_t bytes[CONTROL_BYTES], again[CONTROL_BYTES];

		control_encode(&msg, bytes);
		CHECK(control_decode(bytes, &back));
		control_encode(&back, again);
		CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
		CHECK(back.type == msg.type && back.from == msg.from && back.about == msg.about && back.channel == msg.channel);
		CHECK(back.first == msg.first && back.status == msg.status && back.sequence == msg.sequence);
		CHECK(back.peer == msg.peer && memcmp(&back.note, &msg.note, sizeof(msg.note)) == 0);
		CHECK(back.number == msg.number && back.heard == msg.heard);
		CHECK_STR(back.text, msg.text);
		CHECK_U64(call_note_digest(&back.note), call_note_digest(&msg.note));
	}
}

static void a_turned_bit_is_noticed(struct rng *rng)
{
	struct control_msg msg = draw(rng), back;
	uint8_t bytes[CONTROL_BYTES];

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
	struct call_note note = draw(rng).note, other;

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
	struct control_msg msg = {.type = CONTROL_DEAD, .text = "one\ntwo\x1b[31m"}, back;
	uint8_t bytes[CONTROL_BYTES];

	control_encode(&msg, bytes);
	CHECK(control_decode(bytes, &back));
	CHECK_STR(back.text, "one?two?[31m");
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	round_trip(&rng);
	a_turned_bit_is_noticed(&rng);
	every_field_counts(&rng);
	text_is_harmless();
	return 0;
}
