#include "wire/hello.h"

#include "base/check.h"
#include "base/rng.h"

static void random_hello(struct rng *rng, struct hello *hello)
{
	*hello = (struct hello){
		.version = HELLO_VERSION,
		.purpose = (uint8_t)(HELLO_RENDEZVOUS + rng_below(rng, HELLO_PURPOSE_LAST)),
		.verdict = (uint8_t)rng_below(rng, HELLO_VERDICT_COUNT),
		.from = (uint32_t)rng_next(rng),
		.to = (uint32_t)rng_next(rng),
		.size = (uint32_t)rng_next(rng),
		.epoch = rng_next(rng),
	};
	if (hello->purpose == HELLO_LANE || hello->purpose == HELLO_PROBE)
		hello->lane = (uint32_t)rng_next(rng);
	for (unsigned i = 0; i < HELLO_JOB_BYTES; i++)
		hello->job[i] = (uint8_t)rng_next(rng);
	for (unsigned i = 0; i < HELLO_DIGEST_BYTES; i++)
		hello->settings[i] = (uint8_t)rng_next(rng);
}

static void golden(void)
{
	uint8_t bytes[HELLO_BYTES], again[HELLO_BYTES];
	struct hello hello;

	for (unsigned i = 0; i < HELLO_BYTES; i++)
		bytes[i] = (uint8_t)(i + 1);
	memcpy(bytes, "\x10\x00\x03\x09", 4);
	memset(bytes + 20, 0, 4);
	CHECK(hello_decode(bytes, &hello));
	CHECK_U64(hello.version, HELLO_VERSION);
	CHECK_U64(hello.purpose, HELLO_LANE);
	CHECK_U64(hello.verdict, HELLO_OTHER_LANE);
	CHECK_U64(hello.from, 0x08070605);
	CHECK_U64(hello.to, 0x0c0b0a09);
	CHECK_U64(hello.size, 0x100f0e0d);
	CHECK_U64(hello.lane, 0x14131211);
	CHECK_U64(hello.epoch, UINT64_C(0x201f1e1d1c1b1a19));
	CHECK(hello.job[0] == 33 && hello.job[15] == 48);
	CHECK(hello.settings[0] == 49 && hello.settings[31] == 80);
	hello_encode(&hello, again);
	CHECK(memcmp(bytes, again, HELLO_BYTES) == 0);
}

static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 10000; i++) {
		struct hello hello, back;
		uint8_t bytes[HELLO_BYTES], again[HELLO_BYTES];

		random_hello(rng, &hello);
		hello_encode(&hello, bytes);
		CHECK(hello_decode(bytes, &back));
		hello_encode(&back, again);
		CHECK(memcmp(bytes, again, HELLO_BYTES) == 0);
		CHECK(back.from == hello.from && back.to == hello.to && back.lane == hello.lane && back.epoch == hello.epoch);
	}
}

static bool decodes_with(const struct hello *hello, unsigned at, uint8_t value)
{
	uint8_t bytes[HELLO_BYTES];
	struct hello back;

	hello_encode(hello, bytes);
	bytes[at] = value;
	return hello_decode(bytes, &back);
}

static void refused(struct rng *rng)
{
	struct hello hello;

	random_hello(rng, &hello);
	hello.purpose = HELLO_LANE;
	for (unsigned value = 0; value < 256; value++) {
		CHECK(decodes_with(&hello, 3, (uint8_t)value) == (value < HELLO_VERDICT_COUNT));
		CHECK(decodes_with(&hello, 20, (uint8_t)value) == (value < NODE_ROLES));
		CHECK(decodes_with(&hello, 21, (uint8_t)value) == (value < NODE_ROLES));
		CHECK(decodes_with(&hello, 23, (uint8_t)value) == (value == 0));
	}
	hello.lane = 0;
	for (unsigned value = 0; value < 256; value++)
		CHECK(decodes_with(&hello, 2, (uint8_t)value) == (value >= HELLO_RENDEZVOUS && value <= HELLO_PURPOSE_LAST));
	hello.purpose = HELLO_JOINER; /* without lanes */
	CHECK(decodes_with(&hello, 16, 0) && !decodes_with(&hello, 16, 1));
}

/* Another version may change all bytes behind the ranks: version and ranks are still decoded. */
static void other_version(struct rng *rng)
{
	uint8_t bytes[HELLO_BYTES];
	struct hello hello;

	for (unsigned i = 0; i < HELLO_BYTES; i++)
		bytes[i] = (uint8_t)rng_next(rng);
	memcpy(bytes, "\x01\x00\xff\xff\x05\x00\x00\x00\x06\x00\x00\x00", 12);
	CHECK(hello_decode(bytes, &hello));
	CHECK(hello.version == 1 && hello.from == 5 && hello.to == 6);
	CHECK(hello.size == 0 && hello.epoch == 0);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	golden();
	round_trip(&rng);
	refused(&rng);
	other_version(&rng);
	return 0;
}
