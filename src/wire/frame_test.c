#include "wire/frame.h"

#include "base/check.h"
#include "base/rng.h"

static void golden(void)
{
	static const uint8_t bytes[FRAME_BYTES] = {1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	struct frame frame;
	uint8_t again[FRAME_BYTES];

	CHECK(frame_decode(bytes, &frame));
	CHECK_U64(frame.channel, 0x0302);
	CHECK_U64(frame.index, 0x07060504);
	CHECK_U64(frame.ack, 0x0b0a0908);
	CHECK_U64(frame.bytes, 0x0f0e0d0c);
	frame_encode(&frame, again);
	CHECK(memcmp(bytes, again, FRAME_BYTES) == 0);
}

static void refused(void)
{
	struct frame frame = {.type = 77};
	uint8_t bytes[FRAME_BYTES] = {0};

	for (unsigned type = 0; type < 256; type++) {
		bytes[0] = (uint8_t)type;
		CHECK(frame_decode(bytes, &frame) == (type == FRAME_DATA || type == FRAME_CREDIT));
	}
	bytes[0] = FRAME_DATA;
	bytes[1] = 1;
	CHECK(!frame_decode(bytes, &frame));
	bytes[0] = FRAME_CREDIT;
	bytes[1] = 0;
	bytes[12] = 1;
	CHECK(!frame_decode(bytes, &frame));
}

static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 100000; i++) {
		uint8_t bytes[FRAME_BYTES], again[FRAME_BYTES];
		struct frame frame;

		for (unsigned k = 0; k < FRAME_BYTES; k++)
			bytes[k] = (uint8_t)rng_next(rng);
		bytes[0] = (uint8_t)(1 + rng_below(rng, 2));
		bytes[1] = 0;
		if (!frame_decode(bytes, &frame))
			continue;
		frame_encode(&frame, again);
		CHECK(memcmp(bytes, again, FRAME_BYTES) == 0);
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
