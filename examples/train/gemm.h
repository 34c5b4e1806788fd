/*
 * gemm.h - the product of two matrices, which is nearly all that the training computes.
 *
 * Each element is added up in the order of the sum, one product after the other, without fused operations: the
 * result has the same bits with and without AVX2.
 */
#ifndef TRAIN_GEMM_H
#define TRAIN_GEMM_H

#include <stddef.h>

/* Element (i, j) is at[i * row + j * column]: by rows, or with the two exchanged the transposed matrix. */
struct matrix {
	const float *at;
	size_t row, column;
};

/* c = a b, where a has m rows, b has n columns, k is the inner length, and c is dense by rows. c is neither a nor b. */
void gemm(float *c, struct matrix a, struct matrix b, size_t m, size_t k, size_t n);

#endif
