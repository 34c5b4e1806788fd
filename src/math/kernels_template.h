/*
 * kernels_template.h - all kernels of one level, and their table.
 *
 * Included once by each kernels_LEVEL.c, which first defines
 *   KERNELS         the name of the table
 *   LANES, lanes    a type that holds LANES floats; lanes_all(x) has x in every place
 *   lanes_add, lanes_mul, lanes_div
 *   f16_load, f16_store, bf16_load, bf16_store    LANES halves at any address, as floats
 *   stream_line     MATH_LINE bytes from anywhere to the start of a cache line, around the cache
 *
 * Everything but halves is a plain loop that the compiler vectorizes for the level's
 * flags (docs/math.md tells how to check). The bits do not depend on the width: each
 * element is computed on its own.
 */
#include "math/fpenv.h"
#include "math/kernels.h"

#include <string.h>

/* The iterations of a loop do not depend on each other: dst is a, is b, or overlaps neither. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define INLINE inline __attribute__((always_inline)) /* arguments that are functions become plain calls */

/* Loops over elements at any address: (a op b), and (a op b) op c. */
typedef void pair_fn(void *dst, const void *a, const void *b, size_t count);
typedef void triple_fn(void *dst, const void *a, const void *b, const void *c, size_t count);

/* ---- copying ---- */

static void copy_stream(void *dst, const void *src, size_t bytes)
{
	char *to = dst;
	const char *from = src;
	size_t at = -(uintptr_t)to % MATH_LINE;

	if (at > bytes)
		at = bytes;
	memcpy(to, from, at);
	for (; bytes - at >= MATH_LINE; at += MATH_LINE)
		stream_line(to + at, from + at);
	memcpy(to + at, from + at, bytes - at);
}

/* ---- the kernels of an operation, given its loops ---- */

#define LINED_FROM 4096u /* bytes: less is not worth it */

/* Many elements are taken from where a line of dst begins; `plain` does those before it. */
static INLINE void run_pair(void *dst, const void *a, const void *b, size_t count, size_t element_bytes, pair_fn *loop,
                            bool follows_mode, pair_fn *plain)
{
	size_t before = -(uintptr_t)dst % MATH_LINE / element_bytes;

	if (before > 0 && count * element_bytes >= LINED_FROM)
		plain(dst, a, b, before);
	else
		before = 0;
	size_t at = before * element_bytes;
	uint32_t host = follows_mode ? fpenv_enter() : 0;
	loop((char *)dst + at, (const char *)a + at, (const char *)b + at, count - before);
	if (follows_mode)
		fpenv_leave(host);
}

static INLINE void run_triple(void *dst, const void *a, const void *b, const void *c, size_t count, triple_fn *loop,
                              bool follows_mode)
{
	uint32_t host = follows_mode ? fpenv_enter() : 0;

	loop(dst, a, b, c, count);
	if (follows_mode)
		fpenv_leave(host);
}

/* A line at a time; `plain` does what comes before the first line and after the last, or all where none is whole. */
static INLINE void run_stream(void *dst, const void *a, const void *b, size_t count, size_t element_bytes,
                              pair_fn *loop, bool follows_mode, pair_fn *plain)
{
	char *to = dst;
	const char *from_a = a, *from_b = b;
	const size_t per_line = MATH_LINE / element_bytes;
	size_t before = -(uintptr_t)to % MATH_LINE; /* bytes */

	if (before % element_bytes != 0 || count < before / element_bytes + per_line) {
		plain(dst, a, b, count);
		return;
	}
	plain(to, from_a, from_b, before / element_bytes);
	size_t end = before + (count - before / element_bytes) / per_line * MATH_LINE, rest = count - end / element_bytes;
	uint32_t host = follows_mode ? fpenv_enter() : 0;
	for (size_t at = before; at < end; at += MATH_LINE) {
		_Alignas(MATH_LINE) char line[MATH_LINE];

		loop(line, from_a + at, from_b + at, per_line);
		stream_line(to + at, line);
	}
	if (follows_mode)
		fpenv_leave(host);
	plain(to + end, from_a + end, from_b + end, rest);
}

/* follows_mode: does the result depend on the floating-point mode? */
#define PAIR_KERNELS(name, element_bytes, follows_mode)                          \
	static __attribute__((noinline)) void name(void *dst, const void *a, const void *b, size_t count) \
	{                                                                        \
		run_pair(dst, a, b, count, element_bytes, name##_pair, follows_mode, name); \
	}                                                                        \
	static void name##_stream(void *dst, const void *a, const void *b, size_t count) \
	{                                                                        \
		run_stream(dst, a, b, count, element_bytes, name##_pair, follows_mode, name); \
	}

#define TRIPLE_KERNEL(name, follows_mode)                                        \
	static void name##_3(void *dst, const void *a, const void *b, const void *c, size_t count) \
	{                                                                        \
		run_triple(dst, a, b, c, count, name##_triple, follows_mode);    \
	}

/* The loops of an operation on two elements: value is an expression of x and y. */
#define LOOPS_OF(name, T, value)                                                 \
	static INLINE T name##_of(T x, T y)                                      \
	{                                                                        \
		return (T)(value);                                               \
	}                                                                        \
	static INLINE void name##_pair(void *dst, const void *a, const void *b, size_t count) \
	{                                                                        \
		typedef T at __attribute__((aligned(1), may_alias));             \
		at *to = dst;                                                    \
		const at *from_a = a, *from_b = b;                               \
		INDEPENDENT                                                      \
		for (size_t i = 0; i < count; i++)                               \
			to[i] = name##_of(from_a[i], from_b[i]);                 \
	}                                                                        \
	static INLINE void name##_triple(void *dst, const void *a, const void *b, const void *c, size_t count) \
	{                                                                        \
		typedef T at __attribute__((aligned(1), may_alias));             \
		at *to = dst;                                                    \
		const at *from_a = a, *from_b = b, *from_c = c;                  \
		INDEPENDENT                                                      \
		for (size_t i = 0; i < count; i++)                               \
			to[i] = name##_of(name##_of(from_a[i], from_b[i]), from_c[i]); \
	}

#define FOLD(name, T, value)                                                     \
	LOOPS_OF(name, T, value)                                                 \
	PAIR_KERNELS(name, sizeof(T), false)                                     \
	TRIPLE_KERNEL(name, false)

/* The same for arithmetic whose result follows the floating-point mode. */
#define FOLD_FP(name, T, value)                                                  \
	LOOPS_OF(name, T, value)                                                 \
	PAIR_KERNELS(name, sizeof(T), true)                                      \
	TRIPLE_KERNEL(name, true)

/* data[i] = value, an expression of x = data[i] and k = the operand as a K. */
#define FINISH(name, T, K, value)                                                \
	static void name(void *data, size_t count, double operand)               \
	{                                                                        \
		typedef T at __attribute__((aligned(1), may_alias));             \
		at *elements = data;                                             \
		uint32_t host = fpenv_enter();                                   \
		const K k = (K)fpenv_hold(operand);                              \
		INDEPENDENT                                                      \
		for (size_t i = 0; i < count; i++) {                             \
			const T x = elements[i];                                 \
			elements[i] = (T)(value);                                \
		}                                                                \
		fpenv_leave(host);                                               \
	}

/* ---- integers ---- */

/*
 * Two's complement: these have the same bits for signed and unsigned, so both use the
 * unsigned form, which wraps by definition. 1u keeps narrow types out of signed int.
 */
#define INTEGER_FOLDS(t, U)                                                      \
	FOLD(t##_sum, U, x + y)                                                  \
	FOLD(t##_prod, U, 1u * x * y)                                            \
	FOLD(t##_band, U, x & y)                                                 \
	FOLD(t##_bor, U, x | y)                                                  \
	FOLD(t##_bxor, U, x ^ y)                                                 \
	FOLD(t##_land, U, (x != 0) & (y != 0))                                   \
	FOLD(t##_lor, U, (x | y) != 0)                                           \
	FOLD(t##_lxor, U, (x != 0) ^ (y != 0))

INTEGER_FOLDS(u8, uint8_t)
INTEGER_FOLDS(u16, uint16_t)
INTEGER_FOLDS(u32, uint32_t)
INTEGER_FOLDS(u64, uint64_t)

#define ORDER_FOLDS(t, T)                                                        \
	FOLD(t##_min, T, x < y ? x : y)                                          \
	FOLD(t##_max, T, x > y ? x : y)

ORDER_FOLDS(i8, int8_t)
ORDER_FOLDS(u8, uint8_t)
ORDER_FOLDS(i16, int16_t)
ORDER_FOLDS(u16, uint16_t)
ORDER_FOLDS(i32, int32_t)
ORDER_FOLDS(u32, uint32_t)
ORDER_FOLDS(i64, int64_t)
ORDER_FOLDS(u64, uint64_t)

/*
 * Division in floating point vectorizes, integer division does not, and up to 32 bits it
 * truncates to the right integer: a quotient below an integer q is below it by 1/divisor
 * at least, which is 1/dividend or more in relation to q, so 2^-16 or 2^-32; a float
 * rounds by 2^-24, a double by 2^-53. (A divisor that a float does not hold exactly
 * exceeds every 16-bit dividend by far.)
 */
FINISH(i8_divide, int8_t, float, (int32_t)((float)x / k))
FINISH(u8_divide, uint8_t, float, (int32_t)((float)x / k))
FINISH(i16_divide, int16_t, float, (int32_t)((float)x / k))
FINISH(u16_divide, uint16_t, float, (int32_t)((float)x / k))
FINISH(i32_divide, int32_t, double, (int32_t)((double)x / k))
FINISH(u32_divide, uint32_t, double, (int64_t)((double)x / k))
FINISH(i64_divide, int64_t, int64_t, x / k)
FINISH(u64_divide, uint64_t, uint64_t, x / k)

/* A negative factor goes through int64_t: a double below zero has no unsigned value in C. */
FINISH(i8_multiply, uint8_t, int64_t, x * (uint32_t)k)
FINISH(u8_multiply, uint8_t, int64_t, x * (uint32_t)k)
FINISH(i16_multiply, uint16_t, int64_t, x * (uint32_t)k)
FINISH(u16_multiply, uint16_t, int64_t, x * (uint32_t)k)
FINISH(i32_multiply, uint32_t, int64_t, x * (uint32_t)k)
FINISH(u32_multiply, uint32_t, int64_t, x * (uint32_t)k)
FINISH(i64_multiply, uint64_t, int64_t, x * (uint64_t)k)
FINISH(u64_multiply, uint64_t, uint64_t, x * k)

/* ---- f32, f64 ---- */

FOLD_FP(f32_sum, float, x + y)
FOLD_FP(f32_prod, float, x * y)
FINISH(f32_divide, float, float, x / k)
FINISH(f32_multiply, float, float, x * k)

FOLD_FP(f64_sum, double, x + y)
FOLD_FP(f64_prod, double, x * y)
FINISH(f64_divide, double, double, x / k)
FINISH(f64_multiply, double, double, x * k)

/* ---- the order of f32 and f64 ---- */

/*
 * A comparison that fails, for NaN or for equal zeros, gives the second operand, so the
 * two ways round differ in these cases only, and the bits of both put them right: or-ing
 * makes -0 the lesser zero and keeps a NaN a NaN; and-ing makes +0 the greater zero, and
 * a NaN (all bits set) is put in by hand. A comparison with its choice is one instruction
 * of x86 (minps, maxps).
 */
#define FLOAT_ORDER_FOLDS(t, T, U)                                               \
	static INLINE U t##_bits(T x)                                            \
	{                                                                        \
		U bits_of_x;                                                     \
		memcpy(&bits_of_x, &x, sizeof(x));                               \
		return bits_of_x;                                                \
	}                                                                        \
	static INLINE T t##_of_bits(U x)                                         \
	{                                                                        \
		T value;                                                         \
		memcpy(&value, &x, sizeof(x));                                   \
		return value;                                                    \
	}                                                                        \
	static INLINE T t##_lesser(T x, T y)                                     \
	{                                                                        \
		return t##_of_bits(t##_bits(x < y ? x : y) | t##_bits(y < x ? y : x)); \
	}                                                                        \
	static INLINE T t##_greater(T x, T y)                                    \
	{                                                                        \
		U number = t##_bits(x > y ? x : y) & t##_bits(y > x ? y : x);    \
		return t##_of_bits(__builtin_isunordered(x, y) ? (U)-1 : number); \
	}                                                                        \
	FOLD_FP(t##_min, T, t##_lesser(x, y))                                    \
	FOLD_FP(t##_max, T, t##_greater(x, y))

FLOAT_ORDER_FOLDS(f32, float, uint32_t)
FLOAT_ORDER_FOLDS(f64, double, uint64_t)

/* ---- the order of f16 and bf16 ---- */

/*
 * In integers: with the bits of negative numbers turned round, halves order like signed integers, -0 just below +0, and
 * NaNs at both ends. Modulo 2^16 the NaNs lie together, so a rotation moves all of them to the bottom (for the minimum,
 * where they must win) or to the top (for the maximum).
 */
static INLINE int16_t half_turn(int16_t x)
{
	return (int16_t)(x ^ (x >> 15 & 0x7fff)); /* its own inverse */
}

static INLINE int16_t half_order(int16_t x, int turn)
{
	return (int16_t)(half_turn(x) + turn);
}

static INLINE int16_t half_min(int16_t x, int16_t y, int16_t infinity)
{
	const int turn = INT16_MAX - infinity;
	int16_t p = half_order(x, turn), q = half_order(y, turn);
	return half_turn((int16_t)((p < q ? p : q) - turn));
}

static INLINE int16_t half_max(int16_t x, int16_t y, int16_t infinity)
{
	const int turn = infinity - INT16_MAX;
	int16_t p = half_order(x, turn), q = half_order(y, turn);
	return half_turn((int16_t)((p > q ? p : q) - turn));
}

FOLD(f16_min, int16_t, half_min(x, y, 0x7c00))
FOLD(f16_max, int16_t, half_max(x, y, 0x7c00))
FOLD(bf16_min, int16_t, half_min(x, y, 0x7f80))
FOLD(bf16_max, int16_t, half_max(x, y, 0x7f80))

/* ---- arithmetic of f16 and bf16, LANES at a time ---- */

typedef lanes half_load_fn(const void *from);
typedef void half_store_fn(void *to, lanes value);
typedef lanes half_op_fn(lanes x, lanes y);

#define HALF_BYTES sizeof(uint16_t)

static INLINE void half_pairs(void *dst, const void *a, const void *b, size_t count, half_load_fn *load,
                              half_store_fn *store, half_op_fn *op)
{
	char *to = dst;
	const char *from_a = a, *from_b = b;
	size_t end = count / LANES * LANES * HALF_BYTES, rest = count * HALF_BYTES - end;

	for (size_t at = 0; at < end; at += LANES * HALF_BYTES)
		store(to + at, op(load(from_a + at), load(from_b + at)));
	if (rest == 0)
		return;
	/* The last few, less than a vector: the same instructions on a padded copy. */
	uint16_t x[LANES] = {0}, y[LANES] = {0};
	memcpy(x, from_a + end, rest);
	memcpy(y, from_b + end, rest);
	store(x, op(load(x), load(y)));
	memcpy(to + end, x, rest);
}

static INLINE void half_finish(void *data, size_t count, double operand, half_load_fn *load, half_store_fn *store,
                               half_op_fn *op)
{
	char *at = data;
	size_t whole = count / LANES * LANES;
	uint32_t host = fpenv_enter();
	const lanes k = lanes_all((float)fpenv_hold(operand));
	uint16_t rest[LANES] = {0};

	for (size_t i = 0; i < whole; i += LANES)
		store(at + i * HALF_BYTES, op(load(at + i * HALF_BYTES), k));
	if (whole < count) {
		memcpy(rest, at + whole * HALF_BYTES, (count - whole) * HALF_BYTES);
		store(rest, op(load(rest), k));
		memcpy(at + whole * HALF_BYTES, rest, (count - whole) * HALF_BYTES);
	}
	fpenv_leave(host);
}

/* Conversion is the limit, not the cache, so a loop over three would gain nothing. */
#define HALF_FOLD(name, t, op)                                                   \
	static INLINE void name##_pair(void *dst, const void *a, const void *b, size_t count) \
	{                                                                        \
		half_pairs(dst, a, b, count, t##_load, t##_store, op);           \
	}                                                                        \
	PAIR_KERNELS(name, HALF_BYTES, true)                                     \
	static void name##_3(void *dst, const void *a, const void *b, const void *c, size_t count) \
	{                                                                        \
		name(dst, a, b, count);                                          \
		name(dst, dst, c, count);                                        \
	}

#define HALF_ARITHMETIC(t)                                                       \
	HALF_FOLD(t##_sum, t, lanes_add)                                         \
	HALF_FOLD(t##_prod, t, lanes_mul)                                        \
	static void t##_divide(void *data, size_t count, double operand)         \
	{                                                                        \
		half_finish(data, count, operand, t##_load, t##_store, lanes_div); \
	}                                                                        \
	static void t##_multiply(void *data, size_t count, double operand)       \
	{                                                                        \
		half_finish(data, count, operand, t##_load, t##_store, lanes_mul); \
	}

HALF_ARITHMETIC(f16)
HALF_ARITHMETIC(bf16)

/* ---- sums that are stored to many places ---- */

/*
 * Bytes that are summed, and then stored to all, at a time: they stay in registers or the first cache (docs/math.md).
 */
#define SPREAD_BYTES 256u

/* Whole blocks; returns how many elements that are. */
static INLINE size_t run_spread(const struct math_spread *spread, size_t count, size_t element_bytes, pair_fn *loop,
                                math_finish_fn *finish, double operand)
{
	const size_t per_block = SPREAD_BYTES / element_bytes;
	size_t end = count / per_block * SPREAD_BYTES;
	uint32_t host = fpenv_enter();

	for (size_t at = 0; at < end; at += SPREAD_BYTES) {
		_Alignas(MATH_LINE) char sum[SPREAD_BYTES];

		loop(sum, (const char *)spread->sources[0] + at, (const char *)spread->sources[1] + at, per_block);
		for (size_t i = 2; i < spread->source_count; i++)
			loop(sum, sum, (const char *)spread->sources[i] + at, per_block);
		if (finish)
			finish(sum, per_block, operand);
		for (size_t i = 0; i < spread->place_count; i++)
			memcpy((char *)spread->places[i] + at, sum, SPREAD_BYTES);
		for (size_t i = 0; i < spread->far_count; i++)
			copy_stream((char *)spread->far[i] + at, sum, SPREAD_BYTES);
	}
	fpenv_leave(host);
	return end / element_bytes;
}

#define SPREAD(t, element_bytes)                                                 \
	static size_t t##_spread(const struct math_spread *spread, size_t count, math_finish_fn *finish, double operand) \
	{                                                                        \
		return run_spread(spread, count, element_bytes, t##_sum_pair, finish, operand); \
	}

SPREAD(f32, sizeof(float))
SPREAD(f64, sizeof(double))
SPREAD(f16, HALF_BYTES)
SPREAD(bf16, HALF_BYTES)

/* ---- fixed point: fixed.h ---- */

/* GCC and clang vectorize these as they stand; data is at any address. */
typedef float float_at __attribute__((aligned(1), may_alias));
typedef int32_t int_at __attribute__((aligned(1), may_alias));
typedef uint32_t word_at __attribute__((aligned(1), may_alias));
typedef uint16_t half_at __attribute__((aligned(1), may_alias));

#define PEAK(t, U, sign)                                                         \
	static uint32_t t##_peak(const void *data, size_t count)                 \
	{                                                                        \
		const U##_at *from = data;                                       \
		int32_t peak = 0;                                                \
		for (size_t i = 0; i < count; i++) {                             \
			int32_t magnitude = (int32_t)(from[i] & ~(sign));        \
			peak = magnitude > peak ? magnitude : peak;              \
		}                                                                \
		return (uint32_t)peak;                                           \
	}

PEAK(f32, word, 0x80000000u)
PEAK(half, half, 0xffff8000u)

/* f16 in integers, as at the portable level: a multiplication moves the exponent, and normalizes denormals. */
static void f16_widen_all(float *dst, const void *src, size_t count)
{
	const half_at *from = src;
	INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		uint32_t magnitude = (from[i] & 0x7fffu) << 13, sign = (from[i] & 0x8000u) << 16;
		uint32_t special = magnitude > 0x0f7fffffu ? 0x7f800000u : 0;
		dst[i] = f32_of_bits(f32_bits(f32_of_bits(magnitude) * 0x1p112f) | special | sign);
	}
}

static void bf16_widen_all(float *dst, const void *src, size_t count)
{
	const half_at *from = src;
	INDEPENDENT
	for (size_t i = 0; i < count; i++)
		dst[i] = f32_of_bits((uint32_t)from[i] << 16);
}

static INLINE uint32_t half_pick(bool condition, uint32_t yes, uint32_t no)
{
	uint32_t mask = -(uint32_t)condition;
	return (yes & mask) | (no & ~mask);
}

/* To nearest even, as f16_narrow() of the portable level explains it; a NaN becomes a quiet one. */
static void f16_narrow_all(void *dst, const float *src, size_t count)
{
	half_at *to = dst;
	INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		uint32_t whole = f32_bits(src[i]), magnitude = whole & 0x7fffffffu;
		uint32_t tiny = f32_bits(f32_of_bits(magnitude) + 0.5f) - (126u << 23);
		uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
		normal = half_pick((int32_t)magnitude >= 143 << 23, 0x7c00u, normal);
		normal = half_pick((int32_t)magnitude > 255 << 23, 0x7e00u, normal);
		to[i] = (uint16_t)(half_pick((int32_t)magnitude >= 113 << 23, normal, tiny) | (whole >> 16 & 0x8000u));
	}
}

static void bf16_narrow_all(void *dst, const float *src, size_t count)
{
	half_at *to = dst;
	INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		uint32_t whole = f32_bits(src[i]), nearest = (whole + 0x7fffu + (whole >> 16 & 1u)) >> 16;
		to[i] = (uint16_t)half_pick((int32_t)(whole & 0x7fffffffu) > 255 << 23, whole >> 16 | 0x40u, nearest);
	}
}

/*
 * To the nearest whole number, to even in the middle, within bound; a NaN becomes bound with its sign. Magnitudes are
 * ordered like their bits, so the clamp is one of integers; it comes first, so that the conversion is defined. Below
 * 2^23 an addition of 2^23 rounds; from there on a float is whole. Masks instead of ?:, behind which GCC would not
 * vectorize.
 */
static INLINE int32_t fixed_round(float x, int32_t bound_bits)
{
	int32_t whole = (int32_t)f32_bits(x), negative = whole >> 31, magnitude = whole & 0x7fffffff;

	magnitude = magnitude < bound_bits ? magnitude : bound_bits;
	int32_t rounded = (int32_t)f32_bits((f32_of_bits((uint32_t)magnitude) + 0x1p23f) - 0x1p23f);
	int32_t small = -(int32_t)(magnitude < 0x4b000000);
	int32_t number = (int32_t)f32_of_bits((uint32_t)((rounded & small) | (magnitude & ~small)));
	return (number ^ negative) - negative;
}

/* The scale is held in locals: dst could be where it lies, for all that the compiler knows. */
static void fixed_quantize32(void *dst, const void *src, size_t count, const struct math_scale *scale)
{
	const float first = scale->first, second = scale->second;
	const int32_t bound = (int32_t)f32_bits(scale->bound);
	int_at *to = dst;
	const float_at *from = src;
	INDEPENDENT
	for (size_t i = 0; i < count; i++)
		to[i] = fixed_round(from[i] * first * second, bound);
}

static void fixed_quantize16(void *dst, const void *src, size_t count, const struct math_scale *scale)
{
	const float first = scale->first, second = scale->second;
	const int32_t bound = (int32_t)f32_bits(scale->bound);
	const int32_t bias = scale->bias;
	half_at *to = dst;
	const float_at *from = src;
	INDEPENDENT
	for (size_t i = 0; i < count; i++)
		to[i] = (uint16_t)(fixed_round(from[i] * first * second, bound) + bias);
}

/* The division comes before the scale, so that an average does not overflow where its sum would. */
#define DEQUANTIZE(name, source, value)                                          \
	static void name(void *dst, const void *src, size_t count, const struct math_scale *scale) \
	{                                                                        \
		const float first = scale->first, second = scale->second, divisor = scale->divisor; \
		const int32_t bias = scale->bias;                                \
		float_at *to = dst;                                              \
		const source##_at *from = src;                                   \
		(void)bias;                                                      \
		if (divisor == 1) {                                              \
			INDEPENDENT                                              \
			for (size_t i = 0; i < count; i++)                       \
				to[i] = (float)(value) * first * second;         \
			return;                                                  \
		}                                                                \
		INDEPENDENT                                                      \
		for (size_t i = 0; i < count; i++)                               \
			to[i] = (float)(value) / divisor * first * second;       \
	}

DEQUANTIZE(fixed_dequantize32, int, from[i])
DEQUANTIZE(fixed_dequantize16, half, (int32_t)from[i] - bias)

/* ---- the table ---- */

/* ESP_AVG and ESP_SCALED fold as sums; math_finish() does the rest. The suffix says which kernel of each operation. */
#define ARITHMETIC(t, suffix)                                                    \
	[ESP_SUM] = t##_sum##suffix, [ESP_AVG] = t##_sum##suffix, [ESP_SCALED] = t##_sum##suffix, \
	[ESP_PROD] = t##_prod##suffix

#define FLOAT_ROW(t, suffix)                                                     \
	{                                                                        \
		ARITHMETIC(t, suffix), [ESP_MIN] = t##_min##suffix, [ESP_MAX] = t##_max##suffix, \
	}

/* i has the order, u (the unsigned type of the same width) everything else. */
#define INTEGER_ROW(i, u, suffix)                                                \
	{                                                                        \
		ARITHMETIC(u, suffix), [ESP_MIN] = i##_min##suffix, [ESP_MAX] = i##_max##suffix, \
		[ESP_BAND] = u##_band##suffix, [ESP_BOR] = u##_bor##suffix, [ESP_BXOR] = u##_bxor##suffix, \
		[ESP_LAND] = u##_land##suffix, [ESP_LOR] = u##_lor##suffix, [ESP_LXOR] = u##_lxor##suffix, \
	}

#define FOLD_ROWS(suffix)                                                        \
	{                                                                        \
		[ESP_F32] = FLOAT_ROW(f32, suffix), [ESP_F64] = FLOAT_ROW(f64, suffix), \
		[ESP_F16] = FLOAT_ROW(f16, suffix), [ESP_BF16] = FLOAT_ROW(bf16, suffix), \
		[ESP_I8] = INTEGER_ROW(i8, u8, suffix), [ESP_U8] = INTEGER_ROW(u8, u8, suffix), \
		[ESP_I16] = INTEGER_ROW(i16, u16, suffix), [ESP_U16] = INTEGER_ROW(u16, u16, suffix), \
		[ESP_I32] = INTEGER_ROW(i32, u32, suffix), [ESP_U32] = INTEGER_ROW(u32, u32, suffix), \
		[ESP_I64] = INTEGER_ROW(i64, u64, suffix), [ESP_U64] = INTEGER_ROW(u64, u64, suffix), \
	}

#define FINISH_ROW(step)                                                         \
	{                                                                        \
		[ESP_F32] = f32_##step, [ESP_F64] = f64_##step,                  \
		[ESP_F16] = f16_##step, [ESP_BF16] = bf16_##step,                \
		[ESP_I8] = i8_##step, [ESP_U8] = u8_##step,                      \
		[ESP_I16] = i16_##step, [ESP_U16] = u16_##step,                  \
		[ESP_I32] = i32_##step, [ESP_U32] = u32_##step,                  \
		[ESP_I64] = i64_##step, [ESP_U64] = u64_##step,                  \
	}

const struct math_kernels KERNELS = {
	.fold = FOLD_ROWS(),
	.fold3 = FOLD_ROWS(_3),
	.fold_stream = FOLD_ROWS(_stream),
	.spread = {[ESP_F32] = f32_spread, [ESP_F64] = f64_spread, [ESP_F16] = f16_spread, [ESP_BF16] = bf16_spread},
	.copy_stream = copy_stream,
	.divide = FINISH_ROW(divide),
	.multiply = FINISH_ROW(multiply),
	.peak = {[ESP_F32] = f32_peak, [ESP_F16] = half_peak, [ESP_BF16] = half_peak},
	.widen = {[ESP_F16] = f16_widen_all, [ESP_BF16] = bf16_widen_all},
	.narrow = {[ESP_F16] = f16_narrow_all, [ESP_BF16] = bf16_narrow_all},
	.quantize32 = fixed_quantize32,
	.quantize16 = fixed_quantize16,
	.dequantize32 = fixed_dequantize32,
	.dequantize16 = fixed_dequantize16,
};
