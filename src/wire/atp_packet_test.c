/*
 * Packets there and back, byte by byte against the layout, and everything that a decoder has to refuse.
 */
#include "wire/atp_packet.h"

#include "base/check.h"
#include "base/rng.h"

static struct atp_packet draw_gradient(struct rng *rng)
{
	struct atp_packet packet = {
		.type = ATP_GRADIENT,
		.flags = (uint8_t)rng_below(rng, 32),
		.hop = (uint8_t)rng_below(rng, 2),
		.scale = (uint8_t)rng_next(rng),
		.kind = (uint8_t)(1 + rng_below(rng, 4)),
		.fan_in = {(uint8_t)(1 + rng_below(rng, 64)), (uint8_t)(1 + rng_below(rng, 64))},
		.owner = (uint16_t)rng_next(rng),
		.words = (uint16_t)(1 + rng_below(rng, ATP_WORDS_MAX)),
		.next = (uint16_t)rng_next(rng),
		.sequence = (uint32_t)rng_next(rng),
		.call = (uint32_t)rng_next(rng),
		.flow = rng_next(rng),
		.tag = rng_next(rng),
	};
	if (packet.hop == 0)
		packet.group = (uint16_t)rng_below(rng, packet.fan_in[1]);
	else
		packet.fan_in[0] = 0;
	packet.bitmap = UINT64_C(1) << rng_below(rng, packet.fan_in[packet.hop]);
	return packet;
}

static struct atp_packet draw_other(struct rng *rng)
{
	struct atp_packet packet = {
		.type = (uint8_t)(ATP_RESULT + rng_below(rng, 5)),
		.flags = (uint8_t)rng_below(rng, 32),
		.owner = (uint16_t)rng_next(rng),
		.words = (uint16_t)(1 + rng_below(rng, 400)),
		.next = (uint16_t)rng_next(rng),
		.sequence = (uint32_t)rng_next(rng),
		.call = (uint32_t)rng_next(rng),
		.flow = rng_next(rng),
		.tag = rng_next(rng),
	};
	if (packet.type == ATP_RESULT) {
		packet.kind = (uint8_t)(1 + rng_below(rng, 4));
		packet.scale = (uint8_t)rng_next(rng);
	}
	return packet;
}

static bool decodes(const struct atp_packet *packet, struct atp_packet *out)
{
	uint8_t bytes[ATP_HEADER_BYTES + 4 * (ATP_WORDS_MAX + 1)] = {0};

	atp_header_put(packet, bytes);
	return atp_packet_decode(bytes, ATP_HEADER_BYTES + 4 * (size_t)packet->words, out) == ATP_DECODED;
}

static void test_round_trip(struct rng *rng)
{
	uint8_t first[ATP_HEADER_BYTES], second[ATP_HEADER_BYTES];

	for (int i = 0; i < 5000; i++) {
		struct atp_packet packet = i % 2 ? draw_gradient(rng) : draw_other(rng), back;
		CHECK(atp_packet_valid(&packet) && decodes(&packet, &back));
		atp_header_put(&packet, first);
		atp_header_put(&back, second);
		CHECK(memcmp(first, second, sizeof(first)) == 0);
		CHECK(back.flow == packet.flow && back.bitmap == packet.bitmap && back.tag == packet.tag);
	}
}

/* The layout is a promise to dissectors and BPF programs: every byte has its place. */
static void test_layout(void)
{
	static const uint8_t expected[ATP_HEADER_BYTES] = {
		1, 1, 9, 0, 4, 3, 2, 1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 4, 0, 0, 0, 0, 0, 0, 0,
		0xd, 0xc, 0xb, 0xa, 2, 1, 3, 0, 8, 5, 0x7f, 2, 0x64, 1, 0xff, 0xff, 8, 7, 6, 5, 4, 3, 2, 1,
	};
	struct atp_packet packet = {
		.type = ATP_GRADIENT, .flags = ATP_RESEND | ATP_MARK, .hop = 0, .scale = 0x7f, .kind = ATP_FIXED_16,
		.fan_in = {8, 5},
		.owner = 0x102, .group = 3, .words = 356, .next = ATP_NO_NEXT, .sequence = 0x1020304, .call = 0xa0b0c0d,
		.flow = UINT64_C(0x1122334455667788), .bitmap = 4, .tag = UINT64_C(0x102030405060708),
	};
	uint8_t bytes[ATP_HEADER_BYTES];

	atp_header_put(&packet, bytes);
	CHECK(memcmp(bytes, expected, sizeof(bytes)) == 0);
}

#define REFUSED(change)                                          \
	do {                                                     \
		struct atp_packet packet = good, back;           \
		change;                                          \
		CHECK_MSG(!decodes(&packet, &back), "%s", #change); \
	} while (0)

static void test_refused(void)
{
	struct atp_packet good = {.type = ATP_GRADIENT, .kind = 1, .fan_in = {3, 2}, .words = 4, .bitmap = 2}, other;

	CHECK(decodes(&good, &other));
	REFUSED(packet.type = 0);
	REFUSED(packet.type = 7);
	REFUSED(packet.flags = 32);
	REFUSED(packet.hop = 2);
	REFUSED(packet.kind = 0);
	REFUSED(packet.kind = 5);
	REFUSED(packet.fan_in[0] = 0);
	REFUSED(packet.fan_in[0] = 65);
	REFUSED(packet.fan_in[1] = 65);
	REFUSED(packet.group = 2);
	REFUSED((packet.fan_in[1] = 0, packet.group = 64));
	REFUSED(packet.hop = 1);
	REFUSED((packet.hop = 1, packet.fan_in[0] = 0, packet.group = 1));
	REFUSED((packet.hop = 1, packet.fan_in[0] = packet.fan_in[1] = 0));
	REFUSED((packet.hop = 1, packet.fan_in[0] = 0, packet.bitmap = 4));
	REFUSED(packet.bitmap = 0);
	REFUSED(packet.bitmap = 8);
	REFUSED(packet.words = 0);
	REFUSED(packet.words = ATP_WORDS_MAX + 1);
	good = (struct atp_packet){.type = ATP_RESULT, .kind = 1, .words = 4};
	CHECK(decodes(&good, &other));
	REFUSED(packet.bitmap = 1);
	REFUSED(packet.fan_in[0] = 1);
	REFUSED(packet.hop = 1);
	REFUSED(packet.group = 1);
	REFUSED(packet.kind = 0);
	REFUSED(packet.words = 0);
	good = (struct atp_packet){.type = ATP_HELLO, .words = ATP_GREETING_WORDS};
	CHECK(decodes(&good, &other));
	REFUSED(packet.kind = 1);
	REFUSED(packet.scale = 1);
}

static void test_second_hop(void)
{
	struct atp_packet packet = {.type = ATP_GRADIENT, .kind = 1, .hop = 1, .fan_in = {0, 2}, .words = 4, .bitmap = 2},
	    out;
	CHECK(decodes(&packet, &out) && !atp_is_complete(&out));
	packet.bitmap = 3;
	CHECK(decodes(&packet, &out) && atp_is_complete(&out));
}

static void test_lengths(void)
{
	struct atp_packet packet = {.type = ATP_GRADIENT, .kind = 1, .fan_in = {3, 2}, .words = 4, .bitmap = 2},
	    out = {.flow = 77};
	uint8_t bytes[ATP_HEADER_BYTES + 20] = {0};

	atp_header_put(&packet, bytes);
	for (size_t length = 0; length <= sizeof(bytes); length++) {
		enum atp_decoded expected = length < ATP_HEADER_BYTES ? ATP_SHORT :
		    length == ATP_HEADER_BYTES + 16 ? ATP_DECODED : ATP_MALFORMED;
		out.flow = 77;
		CHECK_U64(atp_packet_decode(bytes, length, &out), expected);
		CHECK((out.flow == 77) == (expected != ATP_DECODED));
	}
	bytes[0] = 2;
	CHECK_U64(atp_packet_decode(bytes, ATP_HEADER_BYTES + 16, &out), ATP_FOREIGN);
}

static void test_greeting(struct rng *rng)
{
	uint8_t bytes[ATP_GREETING_BYTES], again[ATP_GREETING_BYTES];
	struct atp_greeting greeting, back;

	for (int i = 0; i < 1000; i++) {
		greeting = (struct atp_greeting){rng_next(rng), rng_next(rng), (uint32_t)rng_next(rng), (uint16_t)rng_next(rng),
		                                 .is_registered = rng_chance(rng, 1, 2), .sent_ns = rng_next(rng)};
		greeting.refusal = greeting.is_registered ? 0 : (uint8_t)rng_below(rng, ATP_REFUSED_LAST + 1);
		atp_greeting_encode(&greeting, bytes);
		CHECK(atp_greeting_decode(bytes, &back));
		atp_greeting_encode(&back, again);
		CHECK(memcmp(bytes, again, sizeof(bytes)) == 0 && back.cookie == greeting.cookie &&
		      back.sent_ns == greeting.sent_ns && back.refusal == greeting.refusal);
	}
	bytes[22] = 2;
	CHECK(!atp_greeting_decode(bytes, &back));
	bytes[22] = 1, bytes[23] = 1;
	CHECK(!atp_greeting_decode(bytes, &back));
	bytes[22] = 0, bytes[23] = ATP_REFUSED_LAST + 1;
	CHECK(!atp_greeting_decode(bytes, &back));
	CHECK_STR(atp_type_name(ATP_WELCOME), "welcome");
	CHECK(!atp_type_name(0) && !atp_type_name(ATP_TYPE_LAST + 1));
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	CHECK(atp_children(64) == UINT64_MAX && atp_children(1) == 1 && atp_children(63) == UINT64_MAX >> 1);
	test_round_trip(&rng);
	test_layout();
	test_refused();
	test_second_hop();
	test_lengths();
	test_greeting(&rng);
	return 0;
}
