/*
 * kernels_portable.c - the level that every machine has: plain C for the baseline CPU.
 *
 * Halves are converted with integers, four at a time in vectors of GNU C, which are SSE2
 * or NEON registers. Every case of a conversion is computed and one is selected.
 */
#include <stdint.h>
#include <string.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "math/kernels.h"

#define KERNELS math_kernels_portable
#define VECTOR 4
typedef float vector __attribute__((vector_size(16)));
typedef uint32_t bits __attribute__((vector_size(16)));
typedef int32_t flags __attribute__((vector_size(16))); /* -1 or 0 in each place */

#include "math/lanes.h"

static inline lanes lanes_all(float value)
{
	vector all = {value, value, value, value};
	return (lanes){all, all};
}

/* Eight halves as four words: those in even and those in odd places. */
static inline bits pairs_load(const void *from)
{
	bits pairs;
	memcpy(&pairs, from, sizeof(pairs));
	return pairs;
}

static inline void pairs_store(void *to, bits pairs)
{
	memcpy(to, &pairs, sizeof(pairs));
}

static inline bits pick(flags condition, bits yes, bits no)
{
	return no ^ ((yes ^ no) & (bits)condition);
}

/* As signed numbers, which SSE2 can compare; a magnitude has no sign bit. */
static inline flags greater(bits magnitude, uint32_t limit)
{
	return (flags)magnitude > (int32_t)limit;
}

/* ---- f16 ---- */

#if defined(__aarch64__)

/* Every arm64 converts f16 by instruction, and rounds like the code below. */
static inline lanes f16_load(const void *from)
{
	__fp16 halves[LANES];
	memcpy(halves, from, sizeof(halves));
	return (lanes){vcvt_f32_f16(vld1_f16(halves)), vcvt_f32_f16(vld1_f16(halves + VECTOR))};
}

static inline void f16_store(void *to, lanes value)
{
	__fp16 halves[LANES];
	vst1_f16(halves, vcvt_f16_f32(value.first));
	vst1_f16(halves + VECTOR, vcvt_f16_f32(value.second));
	memcpy(to, halves, sizeof(halves));
}

#else

/* Scaling by the difference of the biases moves the exponent, and normalizes denormals. */
static inline vector f16_widen(bits half)
{
	const float scale = 0x1p112f;
	bits magnitude = (half & 0x7fffu) << 13; /* exponent and fraction in float's places */
	bits special = (bits)greater(magnitude, 0x0f7fffffu) & 0x7f800000u; /* infinity or NaN */
	return (vector)((bits)((vector)magnitude * scale) | special | (half & 0x8000u) << 16);
}

/* Rounds to nearest even; denormals kept, overflow to infinity, NaN quiet. */
static inline bits f16_narrow(vector value)
{
	const float bias = 0.5f;
	bits sign = (bits)value >> 16 & 0x8000u;
	bits magnitude = (bits)value & 0x7fffffffu;
	/* Below 2^-14 adding 0.5 makes the half's last place the float's last place: the FPU rounds. */
	bits tiny = (bits)((vector)magnitude + bias) - (126u << 23);
	/* Otherwise add just under half a last place, and one more if that place is odd. */
	bits normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
	bits special = 0x7c00u | ((bits)greater(magnitude, 0x7f800000u) & 0x0200u);

	/* From 65536 on; what lies a little below rounds up to infinity by itself. */
	normal = pick(greater(magnitude, (143u << 23) - 1), special, normal);
	return pick(greater(magnitude, (113u << 23) - 1), normal, tiny) | sign;
}

static inline lanes f16_load(const void *from)
{
	bits pairs = pairs_load(from);
	return (lanes){f16_widen(pairs & 0xffffu), f16_widen(pairs >> 16)};
}

static inline void f16_store(void *to, lanes value)
{
	pairs_store(to, f16_narrow(value.first) | f16_narrow(value.second) << 16);
}

#endif

/* ---- bf16 ---- */

/*
 * To nearest even: the result is the upper half, with rubbish below it. In general a NaN
 * needs care, since rounding can carry it over into infinity. Not here: a NaN result is
 * an operand made quiet or the CPU's own NaN, and both have zeros in their lower half.
 */
static inline bits bf16_round(vector value)
{
	return (bits)value + 0x7fffu + ((bits)value >> 16 & 1u);
}

static inline lanes bf16_load(const void *from)
{
	bits pairs = pairs_load(from);
	return (lanes){(vector)(pairs << 16), (vector)(pairs & 0xffff0000u)};
}

static inline void bf16_store(void *to, lanes value)
{
	pairs_store(to, bf16_round(value.first) >> 16 | (bf16_round(value.second) & 0xffff0000u));
}

/* ---- stores around the cache ---- */

#if defined(__x86_64__)

static inline void stream_line(void *to, const void *from)
{
	__m128i *quarters = to;
	const __m128i_u *source = from;
	for (int i = 0; i < 4; i++)
		_mm_stream_si128(quarters + i, _mm_loadu_si128(source + i));
}

#else

/* An ordinary store: C has no other. */
static inline void stream_line(void *to, const void *from)
{
	memcpy(to, from, MATH_LINE);
}

#endif

#include "math/kernels_template.h"
