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

/* data[i] = data[i] / operand, or data[i] * operand: math_finish() of one type. */
typedef void math_finish_fn(void *data, size_t count, double operand);

struct math_kernels {
	math_fold_fn *fold[ESP_TYPE_COUNT][ESP_OP_COUNT];
	math_finish_fn *divide[ESP_TYPE_COUNT];   /* ESP_AVG; the operand is a whole number in 1 .. 2^32-1 */
	math_finish_fn *multiply[ESP_TYPE_COUNT]; /* ESP_SCALED; the operand fits the type                 */
};

extern const struct math_kernels math_kernels_portable;
#if defined(__x86_64__)
extern const struct math_kernels math_kernels_avx2;
extern const struct math_kernels math_kernels_avx512;
#endif

/* The table of a level; NULL if this CPU or build lacks it. */
const struct math_kernels *math_kernels_at(enum math_level level);

#endif
