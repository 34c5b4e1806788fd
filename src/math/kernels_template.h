/*
 * kernels_template.h - all kernels of one level, and their table.
 *
 * Included once by each kernels_LEVEL.c, which first defines
 *   KERNELS         the name of the table
 *   LANES, lanes    a type that holds LANES floats; lanes_all(x) has x in every place
 *   lanes_add, lanes_mul, lanes_div
 *   f16_load, f16_store, bf16_load, bf16_store    LANES halves at any address, as floats
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

/* dst[i] = value, an expression of x = a[i] and y = b[i]. The element may stand at any address. */
#define FOLD_LOOP(T, value)                                                      \
	typedef T at __attribute__((aligned(1), may_alias));                     \
	at *to = dst;                                                            \
	const at *from_a = a, *from_b = b;                                       \
	INDEPENDENT                                                              \
	for (size_t i = 0; i < count; i++) {                                     \
		const T x = from_a[i], y = from_b[i];                            \
		to[i] = (T)(value);                                              \
	}

#define FOLD(name, T, value)                                                     \
	static void name(void *dst, const void *a, const void *b, size_t count)  \
	{                                                                        \
		FOLD_LOOP(T, value)                                              \
	}

/* The same for arithmetic whose result follows the floating-point mode. */
#define FOLD_FP(name, T, value)                                                  \
	static void name(void *dst, const void *a, const void *b, size_t count)  \
	{                                                                        \
		uint32_t host = fpenv_enter();                                   \
		FOLD_LOOP(T, value)                                              \
		fpenv_leave(host);                                               \
	}

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
 * In integers: with the bits of negative numbers turned round, halves order like signed
 * integers, -0 just below +0, and NaNs at both ends. Seen as a circle the NaNs lie
 * together, so a turn of the circle moves all of them to the bottom (for the minimum,
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
/* The last few, less than a vector: the same instructions on a padded copy. */
static INLINE void half_fold_rest(char *to, const char *a, const char *b, size_t count, half_load_fn *load,
                                  half_store_fn *store, half_op_fn *op)
{
	uint16_t x[LANES] = {0}, y[LANES] = {0};

	memcpy(x, a, count * HALF_BYTES);
	memcpy(y, b, count * HALF_BYTES);
	store(x, op(load(x), load(y)));
	memcpy(to, x, count * HALF_BYTES);
}

static INLINE void half_fold(void *dst, const void *a, const void *b, size_t count, half_load_fn *load,
                             half_store_fn *store, half_op_fn *op)
{
	char *to = dst;
	const char *from_a = a, *from_b = b;
	size_t whole = count / LANES * LANES;
	uint32_t host = fpenv_enter();

	for (size_t i = 0; i < whole; i += LANES)
		store(to + i * HALF_BYTES, op(load(from_a + i * HALF_BYTES), load(from_b + i * HALF_BYTES)));
	if (whole < count)
		half_fold_rest(to + whole * HALF_BYTES, from_a + whole * HALF_BYTES, from_b + whole * HALF_BYTES,
		               count - whole, load, store, op);
	fpenv_leave(host);
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

#define HALF_ARITHMETIC(t)                                                       \
	static void t##_sum(void *dst, const void *a, const void *b, size_t count) \
	{                                                                        \
		half_fold(dst, a, b, count, t##_load, t##_store, lanes_add);      \
	}                                                                        \
	static void t##_prod(void *dst, const void *a, const void *b, size_t count) \
	{                                                                        \
		half_fold(dst, a, b, count, t##_load, t##_store, lanes_mul);      \
	}                                                                        \
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

/* ---- the table ---- */

/* ESP_AVG and ESP_SCALED fold as sums; math_finish() does the rest. */
#define ARITHMETIC(t)                                                            \
	[ESP_SUM] = t##_sum, [ESP_AVG] = t##_sum, [ESP_SCALED] = t##_sum, [ESP_PROD] = t##_prod

#define FLOAT_ROW(t)                                                             \
	{                                                                        \
		ARITHMETIC(t), [ESP_MIN] = t##_min, [ESP_MAX] = t##_max,         \
	}

/* i has the order, u (the unsigned type of the same width) everything else. */
#define INTEGER_ROW(i, u)                                                        \
	{                                                                        \
		ARITHMETIC(u), [ESP_MIN] = i##_min, [ESP_MAX] = i##_max,         \
		[ESP_BAND] = u##_band, [ESP_BOR] = u##_bor, [ESP_BXOR] = u##_bxor, \
		[ESP_LAND] = u##_land, [ESP_LOR] = u##_lor, [ESP_LXOR] = u##_lxor, \
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
	.fold = {
		[ESP_F32] = FLOAT_ROW(f32),
		[ESP_F64] = FLOAT_ROW(f64),
		[ESP_F16] = FLOAT_ROW(f16),
		[ESP_BF16] = FLOAT_ROW(bf16),
		[ESP_I8] = INTEGER_ROW(i8, u8),
		[ESP_U8] = INTEGER_ROW(u8, u8),
		[ESP_I16] = INTEGER_ROW(i16, u16),
		[ESP_U16] = INTEGER_ROW(u16, u16),
		[ESP_I32] = INTEGER_ROW(i32, u32),
		[ESP_U32] = INTEGER_ROW(u32, u32),
		[ESP_I64] = INTEGER_ROW(i64, u64),
		[ESP_U64] = INTEGER_ROW(u64, u64),
	},
	.divide = FINISH_ROW(divide),
	.multiply = FINISH_ROW(multiply),
};
