/*
 * kernels.h - the tables that each level of kernels fills; private to math and its tests.
 *
 * One table per level, all made from kernels_template.h and differing only in compiler
 * flags and in how halves are widened and narrowed. A NULL entry is an operation that
 * its type does not have. math.c picks the table.
 */
#ifndef MATH_KERNELS_H
#define MATH_KERNELS_H

#include "math/math.h"

#define MATH_LINE 64u /* bytes of a cache line */

/* data[i] = data[i] / operand, or data[i] * operand: math_finish() of one type. */
typedef void math_finish_fn(void *data, size_t count, double operand);

/* dst[i] = (a[i] op b[i]) op c[i]; dst may be equal to a or to b, but not to c. */
typedef void math_fold3_fn(void *dst, const void *a, const void *b, const void *c, size_t count);
/* dst and src do not overlap. */
typedef void math_copy_fn(void *dst, const void *src, size_t bytes);

/*
 * math_spread() of sums; finish, if not NULL, is applied with its operand to what is stored. Returns how many elements
 * it has done: whole blocks.
 */
typedef size_t math_spread_fn(const struct math_spread *spread, size_t count, math_finish_fn *finish, double operand);

/* ---- fixed.h: one block, in the default floating-point mode ---- */

struct math_scale {
	float first, second; /* factors, applied one after the other: powers of two */
	float bound;         /* quantizing: the largest magnitude, a whole number */
	float divisor;       /* dequantizing: a sum is divided by it first */
	int32_t bias;        /* of a 16-bit value, or of a sum of them */
};
/* The largest magnitude of an array, as a pattern of its type without the sign; NaN and infinity are the largest. */
typedef uint32_t math_peak_fn(const void *data, size_t count);
typedef void math_widen_fn(float *dst, const void *src, size_t count);
typedef void math_narrow_fn(void *dst, const float *src, size_t count);
/* dst may be equal to src where elements have the same size. */
typedef void math_quantize_fn(void *dst, const void *src, size_t count, const struct math_scale *scale);

/* The kernels that stream may write around the cache; the caller puts a fence behind them. */
struct math_kernels {
	math_fold_fn *fold[ESP_TYPE_COUNT][ESP_OP_COUNT];
	math_fold3_fn *fold3[ESP_TYPE_COUNT][ESP_OP_COUNT];
	math_fold_fn *fold_stream[ESP_TYPE_COUNT][ESP_OP_COUNT];
	math_spread_fn *spread[ESP_TYPE_COUNT]; /* NULL: by folds and copies */
	math_copy_fn *copy_stream;
	math_finish_fn *divide[ESP_TYPE_COUNT];   /* ESP_AVG; the operand is a whole number in 1 .. 2^32-1 */
	math_finish_fn *multiply[ESP_TYPE_COUNT]; /* ESP_SCALED; the operand fits the type                 */
	math_peak_fn *peak[ESP_TYPE_COUNT];       /* f32, f16, bf16 */
	math_widen_fn *widen[ESP_TYPE_COUNT];     /* f16, bf16 */
	math_narrow_fn *narrow[ESP_TYPE_COUNT];   /* f16, bf16 */
	math_quantize_fn *quantize32, *quantize16, *dequantize32, *dequantize16; /* between floats and integers */
};

extern const struct math_kernels math_kernels_portable;
#if defined(__x86_64__)
extern const struct math_kernels math_kernels_avx2;
extern const struct math_kernels math_kernels_avx512;
#endif

/* The function that math_finish() runs, and its operand. run is NULL: nothing. */
struct math_finisher {
	math_finish_fn *run;
	double operand;
};
struct math_finisher math_kernels_finisher(const struct math_kernels *kernels, enum esp_type type, enum esp_op op,
                                           double factor, uint32_t contributors);

/* The table of a level; NULL if this CPU or build lacks it. */
const struct math_kernels *math_kernels_at(enum math_level level);

/* math_fold_many() and math_fold_many_streaming() with the kernels of one level. */
struct math_many {
	enum esp_type type;
	enum esp_op op;
	const void *const *sources;
	size_t source_count;
};
void math_kernels_fold_many(const struct math_kernels *kernels, const struct math_many *many, void *dst, size_t count);
void math_kernels_fold_many_streaming(const struct math_kernels *kernels, const struct math_many *many, void *dst,
                                      size_t count);
/* fixed_exponents(), fixed_quantize() and fixed_dequantize() with the kernels of one level. */
struct fixed;
void math_kernels_exponents(const struct math_kernels *kernels, enum esp_type type, const void *data, size_t count,
                            uint8_t *out);
void math_kernels_quantize(const struct math_kernels *kernels, const struct fixed *fixed, const void *data,
                           size_t count, const uint8_t *exponents, void *out);
void math_kernels_dequantize(const struct math_kernels *kernels, const struct fixed *fixed, const void *sums,
                             size_t count, const uint8_t *exponents, uint32_t divisor, void *data);

void math_kernels_spread(const struct math_kernels *kernels, const struct math_spread *spread, size_t count);

#endif
