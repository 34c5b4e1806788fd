/*
 * optimizer.h - how a parameter hub updates weights with a finished sum: SGD, momentum, Nesterov, Adam, AdamW.
 *
 * Pure functions over plain memory. Every level of kernels (math.h) gives the same bits, but for which NaN a NaN is;
 * each element depends on its own numbers only, so a buffer may be cut anywhere. The formulas and their order are those
 * of PyTorch's optimizers in float32. Safe from any thread.
 */
#ifndef MATH_OPTIMIZER_H
#define MATH_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "math/math.h"

enum optimizer_kind {
	OPTIMIZER_AVG = 0,   /* no optimizer: the weights become the mean of the contributions */
	OPTIMIZER_SGD = 1,   /* plain, with momentum, or Nesterov's */
	OPTIMIZER_ADAM = 2,
	OPTIMIZER_ADAMW = 3,
};
#define OPTIMIZER_KINDS 4
#define OPTIMIZER_STATES 2u /* most arrays of the size of the model that a kind keeps */

/* Kind and hyper-parameters. Fields that a kind does not use are zero. */
struct optimizer {
	uint8_t kind; /* enum optimizer_kind */
	bool nesterov;
	double lr, momentum, dampening, weight_decay, beta1, beta2, eps;
};

#define OPTIMIZER_TEXT 192u

/*
 * "sgd lr=0.1 momentum=0.9 nesterov=yes weight_decay=1e-4", "adam lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-8", "adamw ...",
 * "avg". Words in any order after the kind; defaults are PyTorch's, lr has none for sgd. ESP_EINVAL with a sentence
 * that names the word and what is expected.
 */
ESP_CHECKED enum esp_status optimizer_parse(const char *text, struct optimizer *out, struct error *err);
/*
 * Other values of the same kind: "lr=0.05 weight_decay=0"; those that are not named stay. ESP_EINVAL; nothing changes
 * then.
 */
ESP_CHECKED enum esp_status optimizer_change(struct optimizer *optimizer, const char *text, struct error *err);
/* The same values, all that the kind uses, so that parsing it gives an equal struct. Returns text. */
const char *optimizer_print(const struct optimizer *optimizer, char text[OPTIMIZER_TEXT]);
/* "lr=0.1": the first value in which two optimizers of one kind differ, as each has it; "": they are equal. */
#define OPTIMIZER_VALUE_TEXT 64u
void optimizer_print_difference(const struct optimizer *a, const struct optimizer *b, char out_a[OPTIMIZER_VALUE_TEXT],
                                char out_b[OPTIMIZER_VALUE_TEXT]);
/* Finite numbers within the ranges that optimizer_parse() takes? err: the first that is not. */
ESP_CHECKED enum esp_status optimizer_check(const struct optimizer *optimizer, struct error *err);
bool optimizer_equal(const struct optimizer *a, const struct optimizer *b);
/* Arrays of floats that it keeps beside the weights: 0 to OPTIMIZER_STATES. */
uint32_t optimizer_states(const struct optimizer *optimizer);

/* True if a step with a sum of gradients is the same as a step with each, but for rounding: plain SGD without decay. */
bool optimizer_is_linear(const struct optimizer *optimizer);

/* 64 bytes on the wire, little endian. False: not an optimizer that optimizer_check() takes. */
#define OPTIMIZER_BYTES 64u
void optimizer_encode(const struct optimizer *optimizer, uint8_t out[OPTIMIZER_BYTES]);
bool optimizer_decode(const uint8_t in[OPTIMIZER_BYTES], struct optimizer *out);

/*
 * One step: gradient = sum[i] / contributors, then weights and states. step counts from 1: states are zero before the
 * first. sum is not written. No pointer needs to be aligned; arrays do not overlap, but sum may be NULL of
 * OPTIMIZER_AVG with contributors 1 and count 0 only.
 */
struct optimizer_step {
	const struct optimizer *optimizer;
	uint64_t step;
	uint32_t contributors;
	float *weights;
	const float *sum;
	float *states[OPTIMIZER_STATES];
};
void optimizer_run(const struct optimizer_step *step, size_t count);
/* The same at one level; false: this CPU or build lacks it. For tests and benchmarks. */
bool optimizer_run_at(enum math_level level, const struct optimizer_step *step, size_t count);

#endif
