#include "wire/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected: bit 31 is x^0 */

/* Three blocks of this many bytes are summed at the same time, then joined. Measured: build/bench/crc_bench. */
#define BLOCK 2048u

static uint32_t byte_table[8][256];  /* slicing by eight */
static uint32_t shift_table[4][256]; /* the effect of BLOCK zero bytes on a checksum, by its bytes */
static bool has_instruction;
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* ---- tables ---- */

static void make_byte_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		byte_table[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++) {
		for (int k = 1; k < 8; k++)
			byte_table[k][i] = byte_table[k - 1][i] >> 8 ^ byte_table[0][byte_table[k - 1][i] & 0xff];
	}
}

/*
 * Checksums without their final inversion are linear: the effect of a byte is the sum of the effects of its
 * bits. So only single bits are run through all BLOCK bytes: every process does this when it starts.
 */
static void make_shift_table(void)
{
	for (uint32_t k = 0; k < 4; k++) {
		for (uint32_t i = 1; i < 256; i++) {
			uint32_t crc = i << 8 * k;

			if (i & (i - 1)) {
				shift_table[k][i] = shift_table[k][i & (i - 1)] ^ shift_table[k][i & -i];
				continue;
			}
			for (uint32_t n = 0; n < BLOCK; n++)
				crc = crc >> 8 ^ byte_table[0][crc & 0xff];
			shift_table[k][i] = crc;
		}
	}
}

static void make_all(void)
{
	make_byte_table();
	make_shift_table();
#if defined(__x86_64__)
	has_instruction = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
	has_instruction = getauxval(AT_HWCAP) & HWCAP_CRC32;
#endif
}

/* ---- by tables ---- */

static uint32_t raw_portable(uint32_t crc, const uint8_t *at, size_t bytes)
{
	for (; bytes >= 8; at += 8, bytes -= 8) {
		uint32_t low = crc ^ (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);

		crc = byte_table[7][low & 0xff] ^ byte_table[6][low >> 8 & 0xff] ^ byte_table[5][low >> 16 & 0xff] ^
		      byte_table[4][low >> 24] ^ byte_table[3][at[4]] ^ byte_table[2][at[5]] ^ byte_table[1][at[6]] ^
		      byte_table[0][at[7]];
	}
	for (; bytes > 0; at++, bytes--)
		crc = crc >> 8 ^ byte_table[0][(crc ^ *at) & 0xff];
	return crc;
}

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t bytes)
{
	pthread_once(&made, make_all);
	return ~raw_portable(~crc, data, bytes);
}

/* ---- by instruction ---- */

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
#define WITH_CRC __attribute__((target("sse4.2")))
WITH_CRC static inline uint32_t step8(uint32_t crc, const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return (uint32_t)_mm_crc32_u64(crc, word);
}

WITH_CRC static inline uint32_t step4(uint32_t crc, const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return _mm_crc32_u32(crc, word);
}

WITH_CRC static inline uint32_t step1(uint32_t crc, const uint8_t *at)
{
	return _mm_crc32_u8(crc, *at);
}
#else
#define WITH_CRC __attribute__((target("+crc")))
WITH_CRC static inline uint32_t step8(uint32_t crc, const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return __crc32cd(crc, word);
}

WITH_CRC static inline uint32_t step4(uint32_t crc, const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return __crc32cw(crc, word);
}

WITH_CRC static inline uint32_t step1(uint32_t crc, const uint8_t *at)
{
	return __crc32cb(crc, *at);
}
#endif

/* The checksum after BLOCK further zero bytes. */
static uint32_t shift(uint32_t crc)
{
	return shift_table[0][crc & 0xff] ^ shift_table[1][crc >> 8 & 0xff] ^ shift_table[2][crc >> 16 & 0xff] ^
	       shift_table[3][crc >> 24];
}

WITH_CRC static uint32_t raw_instruction(uint32_t crc, const uint8_t *at, size_t bytes)
{
	while (bytes >= 3 * BLOCK) {
		uint32_t second = 0, third = 0;

		for (const uint8_t *end = at + BLOCK; at < end; at += 8) {
			crc = step8(crc, at);
			second = step8(second, at + BLOCK);
			third = step8(third, at + 2 * BLOCK);
		}
		crc = shift(shift(crc) ^ second) ^ third;
		at += 2 * BLOCK;
		bytes -= 3 * BLOCK;
	}
	for (; bytes >= 8; at += 8, bytes -= 8)
		crc = step8(crc, at);
	for (; bytes >= 4; at += 4, bytes -= 4) /* a frame's head ends with such a part */
		crc = step4(crc, at);
	for (; bytes > 0; at++, bytes--)
		crc = step1(crc, at);
	return crc;
}

#else

static uint32_t raw_instruction(uint32_t crc, const uint8_t *at, size_t bytes)
{
	return raw_portable(crc, at, bytes);
}

#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
	pthread_once(&made, make_all);
	return ~(has_instruction ? raw_instruction(~crc, data, bytes) : raw_portable(~crc, data, bytes));
}
