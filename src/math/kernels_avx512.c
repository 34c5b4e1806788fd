/*
 * kernels_avx512.c - the level for x86 with AVX-512 F, BW, VL and DQ.
 *
 * The bfloat16 instructions of newer CPUs (VCVTNEPS2BF16) are not used: they turn
 * denormals into zero whatever the mode says, so their bits would differ.
 */
#include <immintrin.h>
#include <stdint.h>

#define KERNELS math_kernels_avx512
#define VECTOR 16
typedef __m512 vector;

#include "math/lanes.h"

static inline lanes lanes_all(float value)
{
	return (lanes){_mm512_set1_ps(value), _mm512_set1_ps(value)};
}

static inline lanes f16_load(const void *from)
{
	const __m256i_u *halves = from;
	return (lanes){_mm512_cvtph_ps(_mm256_loadu_si256(halves)), _mm512_cvtph_ps(_mm256_loadu_si256(halves + 1))};
}

static inline void f16_store(void *to, lanes value)
{
	__m256i_u *halves = to;
	_mm256_storeu_si256(halves, _mm512_cvtps_ph(value.first, _MM_FROUND_TO_NEAREST_INT));
	_mm256_storeu_si256(halves + 1, _mm512_cvtps_ph(value.second, _MM_FROUND_TO_NEAREST_INT));
}

static inline lanes bf16_load(const void *from)
{
	__m512i pairs = _mm512_loadu_si512(from);
	__m512i odd = _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000u));
	return (lanes){_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)), _mm512_castsi512_ps(odd)};
}

/* Rounds as bf16_round() of the portable level; the result is the upper half, with rubbish below it. */
static inline __m512i bf16_round(vector value)
{
	__m512i bits = _mm512_castps_si512(value);
	__m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
	return _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
}

static inline void bf16_store(void *to, lanes value)
{
	__m512i even = _mm512_srli_epi32(bf16_round(value.first), 16);
	_mm512_storeu_si512(to, _mm512_mask_blend_epi16(0x55555555u, bf16_round(value.second), even));
}

/* In halves: a kernel has just written the line with 256-bit stores, which no 512-bit load is forwarded from. */
static inline void stream_line(void *to, const void *from)
{
	__m256i *halves = to;
	const __m256i_u *source = from;
	_mm256_stream_si256(halves, _mm256_loadu_si256(source));
	_mm256_stream_si256(halves + 1, _mm256_loadu_si256(source + 1));
}

#include "math/kernels_template.h"
