/*
 * optimizer_kernels.h - the loops of optimizer_run() at each level; private to math and its tests.
 *
 * One table per level, all made from optimizer_template.h and differing in compiler flags only. The caller puts the
 * floating-point mode to the default (fpenv.h).
 */
#ifndef MATH_OPTIMIZER_KERNELS_H
#define MATH_OPTIMIZER_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

enum optimizer_momentum {
	MOMENTUM_NONE,
	MOMENTUM_FIRST,    /* the first step: the buffer becomes the gradient, without dampening */
	MOMENTUM_HEAVY,
	MOMENTUM_FIRST_NESTEROV,
	MOMENTUM_NESTEROV,
};

/* One step with all that is the same for its elements. Constants are rounded to float once. */
struct optimizer_loop {
	float *weights;
	const float *sum;
	float *first, *second; /* states */

	bool divides; /* gradient = sum / by, or sum * by: by is then an exact reciprocal */
	float by;
	bool decays;
	float decay;  /* gradient += weights * decay; of AdamW: weights *= decay */

	enum optimizer_momentum kind;
	float momentum, taken; /* buffer = buffer * momentum + gradient * taken */
	float rate;            /* of SGD: weights += gradient * rate, which is negative */

	float lerp;            /* Adam: first += (gradient - first) * lerp */
	bool lerps_back;       /* from the gradient, as lerp is 0.5 or more: that keeps its last places */
	float beta2, square;   /* second = second * beta2 + gradient * gradient * square */
	float correction, eps; /* denominator = sqrt(second) / correction + eps */
	float step_size;       /* weights += step_size * first / denominator; negative */
};

typedef void optimizer_loop_fn(const struct optimizer_loop *loop, size_t count);

struct optimizer_kernels {
	optimizer_loop_fn *mean, *sgd, *adam, *adamw;
};

extern const struct optimizer_kernels optimizer_kernels_portable;
#if defined(__x86_64__)
extern const struct optimizer_kernels optimizer_kernels_avx2;
extern const struct optimizer_kernels optimizer_kernels_avx512;
#endif

#endif
