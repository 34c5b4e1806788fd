/*
 * bench_fixed.h - data and results of allreduces in fixed point. Pure: no I/O, no allocation.
 *
 * Whole numbers would be exact in fixed point, too, so the data here has both signs, magnitudes from 2^-6 to 1 and all
 * the digits that its type has. A result is right if it lies within the bound of fixed_error() (math/fixed.h) around
 * the exact one, with the rounding to the type added.
 */
#ifndef TOOLS_BENCH_BENCH_FIXED_H
#define TOOLS_BENCH_BENCH_FIXED_H

#include <stdbool.h>

#include "tools/bench/bench_data.h"

/* Is this call made in fixed point? shape->numerics may be set for other calls, which the library makes as ever. */
bool bench_is_fixed(const struct bench_shape *shape);
/* The number that random bits stand for; the type represents it. */
double bench_fixed_term(enum esp_type type, uint64_t bits);
/* The most by which a result may differ from the exact one. Every rank's data is from bench_fixed_term(). */
double bench_fixed_tolerance(const struct bench_shape *shape, double exact);
/* An element of a float type. */
double bench_fixed_read(enum esp_type type, const uint8_t *element);

#endif
