/*
 * math.h - the arithmetic of reductions: types, folds, and what finishes a sum.
 *
 * Pure functions over plain memory: no I/O, no allocation, no state but the choice of
 * kernels, which is made once per process from what the CPU can do (AVX-512, AVX2,
 * portable; arm64 uses the portable form, which the compiler vectorizes). Every choice
 * gives the same bits. Safe from any thread.
 */
#ifndef MATH_MATH_H
#define MATH_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "espalier/types.h"

/* Bytes of one element; 0 for a value that is not a type. ESP_BYTES has elements of 1 byte. */
size_t math_type_bytes(enum esp_type type);

/*
 * "f32", "bf16", "u8", "bytes" ...; NULL if unknown. The parsers return false and leave *out alone on an unknown name.
 */
const char *math_type_name(enum esp_type type);
const char *math_op_name(enum esp_op op);
bool math_type_parse(const char *name, enum esp_type *out);
bool math_op_parse(const char *name, enum esp_op *out);

/* May op be used on type at all? (bitwise on floats, anything on ESP_BYTES: no) */
bool math_op_defined(enum esp_type type, enum esp_op op);

/*
 * dst[i] = a[i] op b[i] for count elements. dst may be equal to a or to b, but not
 * overlap them in another way; no pointer needs to be aligned, not even to its type.
 * The operands keep their order, so that the bits of a result follow from the order
 * of a plan's terms. f16 and bf16 are computed in float and rounded to nearest even.
 */
typedef void math_fold_fn(void *dst, const void *a, const void *b, size_t count);

/* The fold for type and op on this CPU; NULL where math_op_defined() is false. ESP_AVG and ESP_SCALED fold as sums. */
math_fold_fn *math_fold(enum esp_type type, enum esp_op op);

/*
 * dst[i] = ((s0[i] op s1[i]) op s2[i]) op ..., for two sources or more: the bits that folds
 * of two give one after the other (halves round after each), but dst passes through the
 * caches once. dst may be equal to sources[0], to sources[1] or to both; it overlaps them
 * in no other way, and later sources not at all. Sources may overlap each other. No pointer
 * needs to be aligned. Only where math_op_defined().
 */
void math_fold_many(enum esp_type type, enum esp_op op, void *dst, const void *const *sources, size_t source_count,
                    size_t count);

/*
 * The same, and memcpy, for results that are not read soon: the stores go around the caches where the CPU has such.
 * That saves reading the old contents of dst and spares cached data, but is slower where dst is in a cache already or
 * is read right after, and in pieces below 32 KiB, because each call ends in a fence: other threads see the same after
 * it as with ordinary stores. docs/math.md has the numbers.
 */
void math_fold_many_streaming(enum esp_type type, enum esp_op op, void *dst, const void *const *sources,
                              size_t source_count, size_t count);
void math_copy_streaming(void *dst, const void *src, size_t bytes);

/*
 * For many copies one after the other, with one fence behind all of them: before it other threads may see any of it or
 * nothing.
 */
void math_copy_unfenced(void *dst, const void *src, size_t bytes);
void math_fence(void);

/*
 * A sum that is wanted at many places: the result of math_fold_many(), and math_finish() if it is to be finished,
 * stored to each of them. A few lines at a time, so that the data that was read is in the nearest cache when it is
 * overwritten, and reading goes on while it is written back. Places may be equal to sources, any to any, and overlap
 * them in no other way. Data stored around the caches (far) needs math_fence() before others hear of it.
 */
struct math_spread {
	enum esp_type type;
	enum esp_op op;
	bool finishes;
	uint32_t contributors; /* if it is finished, and so is the factor */
	double factor;
	const void *const *sources;
	size_t source_count; /* two or more */
	void *const *places;
	size_t place_count;
	void *const *far;
	size_t far_count;
};
void math_spread(const struct math_spread *spread, size_t count);

/*
 * Done once to a finished sum: divide by contributors (ESP_AVG), multiply by factor (ESP_SCALED), nothing for all other
 * ops. In place. f16, bf16 and f32 compute in float, f64 in double. Call only with values that math_finish_valid()
 * accepts.
 */
bool math_finish_needed(enum esp_op op);
bool math_finish_valid(enum esp_type type, enum esp_op op, double factor, uint32_t contributors);
void math_finish(void *data, size_t count, enum esp_type type, enum esp_op op, double factor, uint32_t contributors);

/*
 * Elements of f16 or bf16 as floats, which is exact, and floats as such elements, rounded to nearest even; a NaN stays
 * one. f32 is copied. dst and src do not overlap, and need not be aligned.
 */
void math_widen(enum esp_type type, float *dst, const void *src, size_t count);
void math_narrow(enum esp_type type, void *dst, const float *src, size_t count);

/* The levels of kernels, for tests and benchmarks: the best one that the CPU has is in use. */
enum math_level { MATH_PORTABLE, MATH_AVX2, MATH_AVX512 };
#define MATH_LEVEL_COUNT 3
enum math_level math_level_best(void);
const char *math_level_name(enum math_level level);
/* As math_fold(), for one level; NULL if this CPU or build lacks it. */
math_fold_fn *math_fold_at(enum math_level level, enum esp_type type, enum esp_op op);

#endif
