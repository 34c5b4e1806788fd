/*
 * optimizer_kernels_portable.c - the loops of optimizers for the baseline CPU.
 */
#define KERNELS optimizer_kernels_portable

#include "math/optimizer_template.h"
