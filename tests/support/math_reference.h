/*
 * math_reference.h - reductions of one element, slow and plainly right; for math's tests only.
 *
 * Written without the kernels' tricks: numbers are decoded by their definition, integers
 * are 128 bits wide, rounding to a half is a search for the two neighbours of a value.
 */
#ifndef TESTS_SUPPORT_MATH_REFERENCE_H
#define TESTS_SUPPORT_MATH_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "math/math.h"

__extension__ typedef __int128 wide;

static inline bool ref_is_float(enum esp_type type)
{
	return type == ESP_F32 || type == ESP_F64 || type == ESP_F16 || type == ESP_BF16;
}

static inline bool ref_is_signed(enum esp_type type)
{
	return type == ESP_I8 || type == ESP_I16 || type == ESP_I32 || type == ESP_I64;
}

/* The bits of one element, zero-extended. All our machines are little-endian. */
static inline uint64_t ref_load(enum esp_type type, const void *element)
{
	uint64_t bits = 0;
	memcpy(&bits, element, math_type_bytes(type));
	return bits;
}

/* ---- floats ---- */

static inline int ref_fraction_bits(enum esp_type type)
{
	return type == ESP_F64 ? 52 : type == ESP_F32 ? 23 : type == ESP_F16 ? 10 : 7;
}

static inline int ref_exponent_bits(enum esp_type type)
{
	return type == ESP_F64 ? 11 : type == ESP_F16 ? 5 : 8;
}

static inline uint64_t ref_infinity(enum esp_type type)
{
	return ((UINT64_C(1) << ref_exponent_bits(type)) - 1) << ref_fraction_bits(type);
}

static inline uint64_t ref_sign(enum esp_type type)
{
	return UINT64_C(1) << (ref_exponent_bits(type) + ref_fraction_bits(type));
}

static inline bool ref_is_nan(enum esp_type type, uint64_t bits)
{
	return (bits & (ref_sign(type) - 1)) > ref_infinity(type);
}

/* What a pattern without its sign stands for, infinity being the power of two that would follow. */
static inline double ref_magnitude(enum esp_type type, uint64_t bits)
{
	int fraction_bits = ref_fraction_bits(type);
	int bias = (1 << (ref_exponent_bits(type) - 1)) - 1;
	int exponent = (int)(bits >> fraction_bits);
	uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1);

	if (exponent == 0)
		return ldexp((double)fraction, 1 - bias - fraction_bits);
	return ldexp((double)(fraction + (UINT64_C(1) << fraction_bits)), exponent - bias - fraction_bits);
}

static inline double ref_decode(enum esp_type type, uint64_t bits)
{
	uint64_t magnitude = bits & (ref_sign(type) - 1);
	double value = magnitude > ref_infinity(type) ? NAN :
	               magnitude == ref_infinity(type) ? INFINITY : ref_magnitude(type, magnitude);
	return bits & ref_sign(type) ? -value : value;
}

/* To f16 or bf16: the nearer neighbour, the even one of two that are as near. */
static inline uint64_t ref_round_half(enum esp_type type, float value)
{
	uint64_t sign = signbit(value) ? ref_sign(type) : 0;
	uint64_t low = 0, high = ref_infinity(type);
	double magnitude = fabs((double)value);

	if (isnan(value))
		return ref_infinity(type) + 1;
	if (magnitude >= ref_magnitude(type, high))
		return sign | high;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;
		if (ref_magnitude(type, middle) <= magnitude)
			low = middle;
		else
			high = middle;
	}
	double above = magnitude - ref_magnitude(type, low), below = ref_magnitude(type, high) - magnitude;
	return sign | (above < below || (above == below && low % 2 == 0) ? low : high);
}

/* A double to float rounds once more than float arithmetic does, but 53 bits are enough for that not to show. */
static inline uint64_t ref_encode(enum esp_type type, double value)
{
	uint64_t bits = 0;
	float single = (float)value;

	if (type == ESP_F16 || type == ESP_BF16)
		return ref_round_half(type, single);
	if (type == ESP_F32)
		memcpy(&bits, &single, sizeof(single));
	else
		memcpy(&bits, &value, sizeof(value));
	return bits;
}

static inline bool ref_before(double x, double y)
{
	return x < y || (x == y && signbit(x) && !signbit(y));
}

static inline uint64_t ref_fold_float(enum esp_type type, enum esp_op op, uint64_t a, uint64_t b)
{
	volatile double x = ref_decode(type, a), y = ref_decode(type, b);

	switch (op) {
	case ESP_PROD: return ref_encode(type, x * y);
	case ESP_MIN: return isnan(x) ? a : isnan(y) ? b : ref_before(x, y) ? a : b;
	case ESP_MAX: return isnan(x) ? a : isnan(y) ? b : ref_before(x, y) ? b : a;
	default: return ref_encode(type, x + y);
	}
}

/* ---- integers ---- */

static inline wide ref_integer(enum esp_type type, uint64_t bits)
{
	int width = 8 * (int)math_type_bytes(type);
	bool negative = ref_is_signed(type) && bits >> (width - 1) & 1;
	return negative ? (wide)bits - ((wide)1 << width) : (wide)bits;
}

static inline uint64_t ref_fold_integer(enum esp_type type, enum esp_op op, uint64_t a, uint64_t b)
{
	wide x = ref_integer(type, a), y = ref_integer(type, b);

	switch (op) {
	case ESP_PROD: return a * b; /* the low bits do not depend on the sign */
	case ESP_MIN: return x < y ? a : b;
	case ESP_MAX: return x > y ? a : b;
	case ESP_BAND: return a & b;
	case ESP_BOR: return a | b;
	case ESP_BXOR: return a ^ b;
	case ESP_LAND: return x && y;
	case ESP_LOR: return x || y;
	case ESP_LXOR: return !x != !y;
	default: return (uint64_t)(x + y);
	}
}

/* ---- both ---- */

static inline void ref_fold(enum esp_type type, enum esp_op op, void *dst, const void *a, const void *b)
{
	uint64_t x = ref_load(type, a), y = ref_load(type, b);
	uint64_t bits = ref_is_float(type) ? ref_fold_float(type, op, x, y) : ref_fold_integer(type, op, x, y);
	memcpy(dst, &bits, math_type_bytes(type));
}

/* ESP_AVG divides by the operand, ESP_SCALED multiplies with it. */
static inline void ref_finish(enum esp_type type, enum esp_op op, void *element, double operand)
{
	uint64_t bits = ref_load(type, element);

	if (ref_is_float(type)) {
		volatile double x = ref_decode(type, bits);
		volatile double k = type == ESP_F64 ? operand : (float)operand;
		bits = ref_encode(type, op == ESP_AVG ? x / k : x * k);
	} else {
		wide x = ref_integer(type, bits), k = (wide)operand;
		bits = op == ESP_AVG ? (uint64_t)(x / k) : (uint64_t)x * (uint64_t)k;
	}
	memcpy(element, &bits, math_type_bytes(type));
}

/* Equal bits, or NaN both: which NaN is not promised. */
static inline bool ref_same(enum esp_type type, const void *x, const void *y)
{
	uint64_t a = ref_load(type, x), b = ref_load(type, y);
	return a == b || (ref_is_float(type) && ref_is_nan(type, a) && ref_is_nan(type, b));
}

/* ---- what tests are made of ---- */

/* The ends and edges of the type, `which` counting round. */
static inline uint64_t ref_special(enum esp_type type, unsigned which)
{
	uint64_t top = UINT64_C(1) << (8 * math_type_bytes(type) - 1);
	const uint64_t integers[] = {0, 1, 2, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2};

	if (!ref_is_float(type))
		return integers[which % 8];
	uint64_t infinity = ref_infinity(type), least = UINT64_C(1) << ref_fraction_bits(type);
	const uint64_t floats[] = {
		0, 1, 2, least - 1, least, least + 1, infinity, infinity - 1, infinity + 1, infinity + least / 2,
		infinity + least - 1, infinity / 2,
	};
	return floats[which % 12] | (which / 12 % 2 ? top : 0);
}

#define REF_SPECIALS 24 /* so many are different, at most */

/* Any bits, edges, numbers near one (whose sums cancel and tie), small ones and denormals. */
static inline uint64_t ref_random(enum esp_type type, struct rng *rng)
{
	uint64_t bits = rng_next(rng), fraction = (UINT64_C(1) << ref_fraction_bits(type)) - 1;
	uint64_t near_one = (ref_infinity(type) / 2) & ~fraction;

	switch (rng_below(rng, 4)) {
	case 0: return bits;
	case 1: return ref_special(type, (unsigned)(bits % REF_SPECIALS));
	case 2:
		if (!ref_is_float(type))
			return bits % 7 - 3;
		return ((bits & fraction) | near_one) + (bits >> 60) * (fraction + 1) + (bits & ref_sign(type));
	default: return ref_is_float(type) ? bits & (fraction | ref_sign(type)) : bits >> rng_below(rng, 64);
	}
}

static inline void ref_fill(enum esp_type type, void *data, size_t count, struct rng *rng)
{
	size_t bytes = math_type_bytes(type);
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = ref_random(type, rng);
		memcpy((char *)data + i * bytes, &bits, bytes);
	}
}

#endif
