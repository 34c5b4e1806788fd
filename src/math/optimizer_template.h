/*
 * optimizer_template.h - the loops of one level, and their table.
 *
 * Included once by each optimizer_kernels_LEVEL.c, which first defines KERNELS, the name of the table. The loops are
 * plain C that the compiler vectorizes for the level's flags. A loop exists once per combination of its constant
 * arguments, because a choice within a loop would be made per element.
 */
#include "math/optimizer_kernels.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define INLINE inline __attribute__((always_inline)) /* constant arguments become part of the loop */

typedef float element __attribute__((aligned(1), may_alias)); /* a float at any address */

static INLINE float gradient_of(float sum, float by, bool divides)
{
	return divides ? sum / by : sum * by;
}

/* ---- mean ---- */

static INLINE void mean_loop(const struct optimizer_loop *loop, size_t count, bool divides)
{
	element *weights = loop->weights;
	const element *sum = loop->sum;
	const float by = loop->by;

	INDEPENDENT
	for (size_t i = 0; i < count; i++)
		weights[i] = gradient_of(sum[i], by, divides);
}

static void mean(const struct optimizer_loop *loop, size_t count)
{
	if (loop->divides)
		mean_loop(loop, count, true);
	else
		mean_loop(loop, count, false);
}

/* ---- sgd ---- */

/* buffer is NULL where there is no momentum. Returns what the weights move along. */
static INLINE float sgd_direction(float gradient, element *buffer, float momentum, float taken,
                                  enum optimizer_momentum kind)
{
	if (kind == MOMENTUM_NONE)
		return gradient;
	const bool is_first = kind == MOMENTUM_FIRST || kind == MOMENTUM_FIRST_NESTEROV;
	const float now = is_first ? gradient : *buffer * momentum + gradient * taken;
	*buffer = now;
	return kind == MOMENTUM_FIRST || kind == MOMENTUM_HEAVY ? now : gradient + now * momentum;
}

static INLINE void sgd_loop(const struct optimizer_loop *loop, size_t count, bool divides, bool decays,
                            enum optimizer_momentum kind)
{
	element *weights = loop->weights, *buffer = loop->first;
	const element *sum = loop->sum;
	const float by = loop->by, decay = loop->decay, momentum = loop->momentum, taken = loop->taken, rate = loop->rate;

	INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		const float weight = weights[i];
		float gradient = gradient_of(sum[i], by, divides);
		if (decays)
			gradient = gradient + weight * decay;
		weights[i] = weight + sgd_direction(gradient, buffer + i, momentum, taken, kind) * rate;
	}
}

static INLINE void sgd_kind(const struct optimizer_loop *loop, size_t count, bool divides, bool decays)
{
	switch (loop->kind) {
	case MOMENTUM_NONE:
		sgd_loop(loop, count, divides, decays, MOMENTUM_NONE);
		break;
	case MOMENTUM_FIRST:
		sgd_loop(loop, count, divides, decays, MOMENTUM_FIRST);
		break;
	case MOMENTUM_HEAVY:
		sgd_loop(loop, count, divides, decays, MOMENTUM_HEAVY);
		break;
	case MOMENTUM_FIRST_NESTEROV:
		sgd_loop(loop, count, divides, decays, MOMENTUM_FIRST_NESTEROV);
		break;
	case MOMENTUM_NESTEROV:
		sgd_loop(loop, count, divides, decays, MOMENTUM_NESTEROV);
		break;
	}
}

static void sgd(const struct optimizer_loop *loop, size_t count)
{
	if (loop->divides && loop->decays)
		sgd_kind(loop, count, true, true);
	else if (loop->divides)
		sgd_kind(loop, count, true, false);
	else if (loop->decays)
		sgd_kind(loop, count, false, true);
	else
		sgd_kind(loop, count, false, false);
}

/* ---- adam ---- */

enum decay { DECAY_NONE, DECAY_GRADIENT, DECAY_WEIGHTS };

static INLINE float lerp_of(float from, float to, float part, bool back)
{
	return back ? to - (to - from) * (1.0f - part) : from + part * (to - from);
}

static INLINE void adam_loop(const struct optimizer_loop *loop, size_t count, bool divides, enum decay decays,
                             bool back)
{
	element *weights = loop->weights, *first = loop->first, *second = loop->second;
	const element *sum = loop->sum;
	const float by = loop->by, decay = loop->decay, lerp = loop->lerp, beta2 = loop->beta2, square = loop->square;
	const float correction = loop->correction, eps = loop->eps, step_size = loop->step_size;

	INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		float weight = weights[i], gradient = gradient_of(sum[i], by, divides);
		if (decays == DECAY_GRADIENT)
			gradient = gradient + weight * decay;
		if (decays == DECAY_WEIGHTS)
			weight = weight * decay;
		const float mean_now = lerp_of(first[i], gradient, lerp, back);
		const float square_now = second[i] * beta2 + square * gradient * gradient;
		const float denominator = __builtin_sqrtf(square_now) / correction + eps;
		first[i] = mean_now;
		second[i] = square_now;
		weights[i] = weight + step_size * mean_now / denominator;
	}
}

static INLINE void adam_back(const struct optimizer_loop *loop, size_t count, bool divides, enum decay decays)
{
	if (loop->lerps_back)
		adam_loop(loop, count, divides, decays, true);
	else
		adam_loop(loop, count, divides, decays, false);
}

static INLINE void adam_decay(const struct optimizer_loop *loop, size_t count, enum decay decays)
{
	if (loop->divides && loop->decays)
		adam_back(loop, count, true, decays);
	else if (loop->divides)
		adam_back(loop, count, true, DECAY_NONE);
	else if (loop->decays)
		adam_back(loop, count, false, decays);
	else
		adam_back(loop, count, false, DECAY_NONE);
}

static void adam(const struct optimizer_loop *loop, size_t count)
{
	adam_decay(loop, count, DECAY_GRADIENT);
}

static void adamw(const struct optimizer_loop *loop, size_t count)
{
	adam_decay(loop, count, DECAY_WEIGHTS);
}

const struct optimizer_kernels KERNELS = {.mean = mean, .sgd = sgd, .adam = adam, .adamw = adamw};
