#include "wire/crc32c.h"

#include "base/check.h"
#include "base/rng.h"

/* By definition: one bit at a time. */
static uint32_t by_bits(uint32_t crc, const uint8_t *at, size_t bytes)
{
	crc = ~crc;
	for (; bytes > 0; at++, bytes--) {
		crc ^= *at;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~crc;
}

int main(int argc, char **argv)
{
	static uint8_t data[20000];
	static const uint8_t zeros[32];
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	/* The check value of the CRC catalogues, and the first example of RFC 3720, B.4. */
	CHECK_U64(crc32c(0, "123456789", 9), 0xe3069283);
	CHECK_U64(crc32c(0, zeros, 32), 0x8a9136aa);
	CHECK_U64(crc32c(0, NULL, 0), 0);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)rng_next(&rng);
	for (int i = 0; i < 3000; i++) {
		size_t from = rng_below(&rng, 64), bytes = rng_below(&rng, i % 10 ? 300 : sizeof(data) - 64);
		size_t cut = rng_below(&rng, bytes + 1);
		uint32_t start = (uint32_t)rng_next(&rng), expected = by_bits(start, data + from, bytes);

		CHECK_U64(crc32c(start, data + from, bytes), expected);
		CHECK_U64(crc32c_portable(start, data + from, bytes), expected);
		CHECK_U64(crc32c(crc32c(start, data + from, cut), data + from + cut, bytes - cut), expected);
	}
	return 0;
}
