/*
 * fixed.c - scales, and blocks one after the other through the kernels.
 *
 * With max |v| < 2^E in a block and c = ceil(log2 workers), a value becomes rint(v * 2^(F - c - E)), where F is 31 or
 * 15 bits, clamped to less than 2^(F - c). So `workers` of them stay below 2^F, whatever E says.
 */
#include "math/fixed.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "math/fpenv.h"
#include "math/kernels.h"

#define EXPONENT_BIAS 126 /* |v| < 2^(exponent - 126), also for 0, zeros and denormals */

static bool is_half(enum esp_type type)
{
	return type == ESP_F16 || type == ESP_BF16;
}

bool fixed_valid(const struct fixed *fixed)
{
	uint32_t most = fixed->form == FIXED_32 ? FIXED_32_WORKERS : fixed->form == FIXED_16 ? FIXED_16_WORKERS : 0;

	return (fixed->type == ESP_F32 || is_half(fixed->type)) && fixed->workers >= 1 && fixed->workers <= most;
}

size_t fixed_blocks(size_t count)
{
	return count / FIXED_BLOCK + (count % FIXED_BLOCK != 0);
}

size_t fixed_bytes(const struct fixed *fixed, size_t count)
{
	return fixed->form == FIXED_32 ? count * sizeof(uint32_t) : (count / 2 + count % 2) * sizeof(uint32_t);
}

static size_t block_length(size_t count, size_t block)
{
	size_t rest = count - block * FIXED_BLOCK;
	return rest < FIXED_BLOCK ? rest : FIXED_BLOCK;
}

/* ceil(log2 workers) */
static int log2_up(uint32_t workers)
{
	return workers <= 1 ? 0 : 32 - __builtin_clz(workers - 1);
}

static int field_bits(const struct fixed *fixed)
{
	return (fixed->form == FIXED_32 ? 31 : 15) - log2_up(fixed->workers);
}

/* ---- exponents ---- */

/* The biased exponent that a float of this magnitude has. */
static uint8_t exponent_of(enum esp_type type, uint32_t magnitude)
{
	if (type == ESP_F32)
		return (uint8_t)(magnitude >> 23);
	if (type == ESP_BF16)
		return (uint8_t)(magnitude >> 7);
	if (magnitude >= 0x7c00u)
		return FIXED_NOT_FINITE;
	if (magnitude >= 0x0400u)
		return (uint8_t)((magnitude >> 10) + (127 - 15));
	return magnitude == 0 ? 0 : (uint8_t)(31 - __builtin_clz(magnitude) + 127 - 24);
}

void math_kernels_exponents(const struct math_kernels *kernels, enum esp_type type, const void *data, size_t count,
                            uint8_t *out)
{
	const size_t bytes = math_type_bytes(type);

	for (size_t block = 0; block < fixed_blocks(count); block++) {
		const char *from = (const char *)data + block * FIXED_BLOCK * bytes;
		out[block] = exponent_of(type, kernels->peak[type](from, block_length(count, block)));
	}
}

void fixed_exponents(enum esp_type type, const void *data, size_t count, uint8_t *out_exponents)
{
	assert(type == ESP_F32 || is_half(type));
	math_kernels_exponents(math_kernels_at(math_level_best()), type, data, count, out_exponents);
}

bool fixed_finite(const uint8_t *exponents, size_t blocks)
{
	return blocks == 0 || memchr(exponents, FIXED_NOT_FINITE, blocks) == NULL;
}

/* ---- quantizing ---- */

static float power_of_two(int exponent)
{
	assert(exponent >= -126 && exponent <= 127);
	uint32_t bits = (uint32_t)(exponent + 127) << 23;
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* 2^shift in two factors, as it can lie beyond the range of a float. */
static void set_shift(struct math_scale *scale, int shift)
{
	scale->first = power_of_two(shift / 2);
	scale->second = power_of_two(shift - shift / 2);
}

static int shift_of(const struct fixed *fixed, uint8_t exponent)
{
	return field_bits(fixed) - ((int)exponent - EXPONENT_BIAS);
}

/* Below 2^bits: the largest whole number that a float holds. */
static float clamp_of(int bits)
{
	return bits > 24 ? power_of_two(bits) - power_of_two(bits - 24) : power_of_two(bits) - 1;
}

static struct math_scale quantize_scale(const struct fixed *fixed, uint8_t exponent)
{
	struct math_scale scale = {.bound = clamp_of(field_bits(fixed)), .bias = 1 << (field_bits(fixed) & 15)};

	set_shift(&scale, shift_of(fixed, exponent));
	return scale;
}

static void quantize_block(const struct math_kernels *kernels, const struct fixed *fixed, const void *data,
                           size_t count, uint8_t exponent, void *out)
{
	const struct math_scale scale = quantize_scale(fixed, exponent);
	float wide[FIXED_BLOCK];

	if (is_half(fixed->type)) {
		kernels->widen[fixed->type](wide, data, count);
		data = wide;
	}
	if (fixed->form == FIXED_32)
		kernels->quantize32(out, data, count, &scale);
	else
		kernels->quantize16(out, data, count, &scale);
}

void math_kernels_quantize(const struct math_kernels *kernels, const struct fixed *fixed, const void *data,
                           size_t count, const uint8_t *exponents, void *out)
{
	const size_t bytes = math_type_bytes(fixed->type), word = fixed->form == FIXED_32 ? 4 : 2;
	uint32_t host = fpenv_enter();

	for (size_t block = 0; block < fixed_blocks(count); block++) {
		size_t at = block * FIXED_BLOCK;
		quantize_block(kernels, fixed, (const char *)data + at * bytes, block_length(count, block), exponents[block],
		               (char *)out + at * word);
	}
	fpenv_leave(host);
	if (fixed->form == FIXED_16 && count % 2 != 0) {
		uint16_t nothing = (uint16_t)(1 << field_bits(fixed));
		memcpy((char *)out + count * word, &nothing, sizeof(nothing));
	}
}

void fixed_quantize(const struct fixed *fixed, const void *data, size_t count, const uint8_t *exponents, void *out)
{
	assert(fixed_valid(fixed));
	math_kernels_quantize(math_kernels_at(math_level_best()), fixed, data, count, exponents, out);
}

/* ---- and back ---- */

static struct math_scale dequantize_scale(const struct fixed *fixed, uint8_t exponent, uint32_t divisor)
{
	struct math_scale scale = {.bias = (int32_t)(fixed->workers << (field_bits(fixed) & 15)),
	                           .divisor = (float)divisor};

	set_shift(&scale, -shift_of(fixed, exponent));
	return scale;
}

static void dequantize_block(const struct math_kernels *kernels, const struct fixed *fixed, const void *sums,
                             size_t count, const struct math_scale *scale, void *data)
{
	float wide[FIXED_BLOCK];
	float *to = is_half(fixed->type) ? wide : data;

	if (fixed->form == FIXED_32)
		kernels->dequantize32(to, sums, count, scale);
	else
		kernels->dequantize16(to, sums, count, scale);
	if (is_half(fixed->type))
		kernels->narrow[fixed->type](data, wide, count);
}

void math_kernels_dequantize(const struct math_kernels *kernels, const struct fixed *fixed, const void *sums,
                             size_t count, const uint8_t *exponents, uint32_t divisor, void *data)
{
	const size_t bytes = math_type_bytes(fixed->type), word = fixed->form == FIXED_32 ? 4 : 2;
	uint32_t host = fpenv_enter();

	for (size_t block = 0; block < fixed_blocks(count); block++) {
		const struct math_scale scale = dequantize_scale(fixed, exponents[block], divisor);
		size_t at = block * FIXED_BLOCK;
		dequantize_block(kernels, fixed, (const char *)sums + at * word, block_length(count, block), &scale,
		                 (char *)data + at * bytes);
	}
	fpenv_leave(host);
}

void fixed_dequantize(const struct fixed *fixed, const void *sums, size_t count, const uint8_t *exponents,
                      uint32_t divisor, void *data)
{
	assert(fixed_valid(fixed) && divisor >= 1);
	math_kernels_dequantize(math_kernels_at(math_level_best()), fixed, sums, count, exponents, divisor, data);
}

double fixed_error(const struct fixed *fixed, uint8_t exponent)
{
	int bits = field_bits(fixed);

	/* From 24 bits down a value just below the power of two rounds up to it, and is clamped. */
	return fixed->workers * ldexp(bits >= 24 ? 0.5 : 1, -shift_of(fixed, exponent));
}

/* ---- integers ---- */

uint8_t fixed_integer_bits(enum esp_type type, const void *data, size_t count)
{
	uint32_t all = 0;

	assert(type == ESP_I32 || type == ESP_U32);
	for (size_t i = 0; i < count; i++) {
		uint32_t value;
		memcpy(&value, (const char *)data + i * sizeof(value), sizeof(value));
		all |= type == ESP_I32 ? value ^ (uint32_t)((int32_t)value >> 31) : value;
	}
	return all == 0 ? 0 : (uint8_t)(32 - __builtin_clz(all));
}

bool fixed_integer_fits(enum esp_type type, uint8_t bits, uint32_t workers)
{
	assert((type == ESP_I32 || type == ESP_U32) && workers >= 1);
	return bits + log2_up(workers) <= (type == ESP_I32 ? 31 : 32);
}
