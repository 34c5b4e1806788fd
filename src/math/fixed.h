/*
 * fixed.h - sums of floats as sums of integers, whose bits do not depend on the order of addition.
 *
 * A buffer is cut into blocks of FIXED_BLOCK elements by their position in it. For each block the ranks agree on one
 * byte, the largest biased exponent that any of them has there (an ordinary ESP_MAX over ESP_U8). Then each rank
 * quantizes its own part with that exponent, integers are added by any plan, and the sum is dequantized. The clamp
 * of fixed_quantize() keeps every sum of `workers` values within its field, even if the exponents do not fit the data.
 *
 * FIXED_32 holds one sum in a word. FIXED_16 holds two, each with a bias, so that a word is added as one unsigned
 * number and no carry passes from the lower to the upper half: half the bytes, for at most 32 workers.
 *
 * Pure functions over plain memory, safe from any thread; the host's floating-point mode does not matter. All levels
 * of kernels give the same bits. No pointer needs to be aligned.
 */
#ifndef MATH_FIXED_H
#define MATH_FIXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "espalier/types.h"

#define FIXED_BLOCK 256u      /* elements that share an exponent */
#define FIXED_NOT_FINITE 255u /* the exponent of a block that holds a NaN or an infinity */
#define FIXED_32_WORKERS 65536u
#define FIXED_16_WORKERS 32u

enum fixed_form { FIXED_32, FIXED_16 };

/* How the numbers of one call are made: equal on all ranks. */
struct fixed {
	enum fixed_form form;
	enum esp_type type; /* of the data: ESP_F32, ESP_F16 or ESP_BF16 */
	uint32_t workers;   /* how many values are added at most */
};

/* False for a type that is not quantized, for no workers and for more than the form has room for. */
bool fixed_valid(const struct fixed *fixed);

/* Blocks, and so bytes of exponents, of count elements. */
size_t fixed_blocks(size_t count);
/* Bytes of count quantized elements, whole 32-bit words. */
size_t fixed_bytes(const struct fixed *fixed, size_t count);

/*
 * One byte per block of data: the largest biased exponent in it as a float; FIXED_NOT_FINITE for a NaN or an infinity.
 */
void fixed_exponents(enum esp_type type, const void *data, size_t count, uint8_t *out_exponents);
/* Is every block finite? If not, the call has to be made in floating point. */
bool fixed_finite(const uint8_t *exponents, size_t blocks);

/*
 * data, count elements from the start of a block, into fixed_bytes() at out. The exponents are those of its blocks.
 * With f32 and FIXED_32 out may be equal to data; they overlap in no other way. The upper half of a last, odd word
 * counts as zero.
 */
void fixed_quantize(const struct fixed *fixed, const void *data, size_t count, const uint8_t *exponents, void *out);

/*
 * Sums of all workers' values back into data: each is divided by `divisor` (1: a sum, the workers: an average), scaled
 * and rounded to the type. With f32 and FIXED_32 data may be equal to sums. All `workers` must have contributed.
 */
void fixed_dequantize(const struct fixed *fixed, const void *sums, size_t count, const uint8_t *exponents,
                      uint32_t divisor, void *data);

/*
 * How far a sum of fixed->workers values of a block may be from the exact one, before it is rounded to the type: the
 * exponent is that of the block. Half a unit for each value; a whole one where the clamp can be reached.
 */
double fixed_error(const struct fixed *fixed, uint8_t exponent);

/*
 * Integers are added as they are, if no sum can overflow. Bits of the largest magnitude among count elements of
 * ESP_I32 or ESP_U32 (0 to 32); the ranks agree on the largest with an ordinary ESP_MAX; then fits or not.
 */
uint8_t fixed_integer_bits(enum esp_type type, const void *data, size_t count);
bool fixed_integer_fits(enum esp_type type, uint8_t bits, uint32_t workers);

#endif
