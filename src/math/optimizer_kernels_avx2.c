/*
 * optimizer_kernels_avx2.c - the loops of optimizers for x86 with AVX2.
 */
#define KERNELS optimizer_kernels_avx2

#include "math/optimizer_template.h"
