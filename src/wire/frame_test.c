#include "wire/frame.h"

#include "base/check.h"
#include "base/rng.h"
#include "wire/crc32c.h"

/* Writes the head's checksum. */
static void seal(uint8_t bytes[FRAME_BYTES])
{
	uint32_t crc = crc32c(0, bytes, FRAME_BYTES - 4);

	for (int i = 0; i < 4; i++)
		bytes[FRAME_BYTES - 4 + i] = (uint8_t)(crc >> 8 * i);
}

static void golden(void)
{
	static const uint8_t bytes[FRAME_BYTES] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
	                                           20, 21, 22, 23, 24, 0, 0, 0, 0x47, 0xfd, 0x3a, 0x27};
	struct frame frame;
	uint8_t again[FRAME_BYTES];

	CHECK(frame_decode(bytes, &frame));
	CHECK_U64(frame.flags, FRAME_CHECKED);
	CHECK_U64(frame.channel, 0x0302);
	CHECK_U64(frame.index, 0x07060504);
	CHECK_U64(frame.ack, 0x0b0a0908);
	CHECK_U64(frame.call, 0x0f0e0d0c);
	CHECK_U64(frame.bytes, 0x13121110);
	CHECK_U64(frame.data_crc, 0x17161514);
	CHECK_U64(frame.shift, 24);
	frame_encode(&frame, again);
	CHECK(memcmp(bytes, again, FRAME_BYTES) == 0);
}

static void refused(void)
{
	struct frame frame = {.type = 77};
	uint8_t bytes[FRAME_BYTES] = {0};

	for (unsigned type = 0; type < 256; type++) {
		bytes[0] = (uint8_t)type;
		seal(bytes);
		CHECK(frame_decode(bytes, &frame) == (type >= FRAME_DATA && type <= FRAME_COUNT));
	}
	bytes[0] = FRAME_DATA;
	for (unsigned flags = 0; flags < 256; flags++) {
		bytes[1] = (uint8_t)flags;
		seal(bytes);
		CHECK(frame_decode(bytes, &frame) == (flags <= FRAME_CHECKED));
	}
	bytes[1] = 0;
	bytes[20] = 1; /* a data checksum without FRAME_CHECKED */
	seal(bytes);
	CHECK(!frame_decode(bytes, &frame));
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = FRAME_DATA;
	for (unsigned data = 0; data < 2; data++) { /* no data, no shift */
		bytes[16] = (uint8_t)data;
		for (unsigned shift = 0; shift < 256; shift++) {
			bytes[24] = (uint8_t)shift;
			seal(bytes);
			CHECK(frame_decode(bytes, &frame) == (shift == 0 || (data && shift < FRAME_SHIFTS)));
		}
	}
	bytes[24] = 0;
	for (unsigned at = 25; at < 28; at++) { /* bytes that must be zero */
		bytes[at] = 1;
		seal(bytes);
		CHECK(!frame_decode(bytes, &frame));
		bytes[at] = 0;
	}
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = FRAME_CREDIT;
	for (unsigned at = 12; at <= 16; at += 4) { /* a credit with a call, one with data */
		bytes[at] = 1;
		seal(bytes);
		CHECK(!frame_decode(bytes, &frame));
		bytes[at] = 0;
	}
	bytes[0] = FRAME_COUNT;
	bytes[4] = bytes[8] = 1;
	seal(bytes);
	CHECK(frame_decode(bytes, &frame));
	bytes[0] = FRAME_SWITCH; /* one with a count */
	seal(bytes);
	CHECK(!frame_decode(bytes, &frame));
	/* flags, channel, call, bytes, shift */
	for (unsigned at = 1; at <= 24; at += at < 2 ? 1 : at < 12 ? 10 : at < 16 ? 4 : 8) {
		memset(bytes, 0, sizeof(bytes));
		bytes[0] = FRAME_COUNT;
		bytes[at] = 1;
		seal(bytes);
		CHECK(!frame_decode(bytes, &frame));
	}
}

/* A frame is decoded as it was encoded; with any one bit inverted, it is refused. */
static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 20000; i++) {
		struct frame frame = {.type = FRAME_DATA, .flags = FRAME_CHECKED}, back;
		uint8_t bytes[FRAME_BYTES];

		frame.channel = (uint16_t)rng_next(rng);
		frame.index = (uint32_t)rng_next(rng);
		frame.ack = (uint32_t)rng_next(rng);
		frame.call = (uint32_t)rng_next(rng);
		frame.bytes = (uint32_t)rng_next(rng);
		frame.data_crc = (uint32_t)rng_next(rng);
		frame.shift = (uint8_t)(frame.bytes ? rng_below(rng, FRAME_SHIFTS) : 0);
		frame_encode(&frame, bytes);
		CHECK(frame_decode(bytes, &back));
		CHECK(back.channel == frame.channel && back.index == frame.index && back.ack == frame.ack);
		CHECK(back.call == frame.call && back.bytes == frame.bytes && back.data_crc == frame.data_crc &&
		      back.shift == frame.shift);
		uint64_t bit = rng_below(rng, 8 * FRAME_BYTES);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK(!frame_decode(bytes, &back));
	}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	golden();
	refused();
	round_trip(&rng);
	return 0;
}
