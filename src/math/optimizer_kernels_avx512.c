/*
 * optimizer_kernels_avx512.c - the loops of optimizers for x86 with AVX-512, in 256-bit vectors (meson.build).
 */
#define KERNELS optimizer_kernels_avx512

#include "math/optimizer_template.h"
