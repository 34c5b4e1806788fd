/*
 * kernels_avx2.c - the level for x86 with AVX2 and F16C.
 */
#include <immintrin.h>
#include <stdint.h>

#define KERNELS math_kernels_avx2
#define VECTOR 8
typedef __m256 vector;

#include "math/lanes.h"

static inline lanes lanes_all(float value)
{
	return (lanes){_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

static inline lanes f16_load(const void *from)
{
	const __m128i_u *halves = from;
	return (lanes){_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
}

static inline void f16_store(void *to, lanes value)
{
	__m128i_u *halves = to;
	_mm_storeu_si128(halves, _mm256_cvtps_ph(value.first, _MM_FROUND_TO_NEAREST_INT));
	_mm_storeu_si128(halves + 1, _mm256_cvtps_ph(value.second, _MM_FROUND_TO_NEAREST_INT));
}

static inline lanes bf16_load(const void *from)
{
	__m256i pairs = _mm256_loadu_si256(from);
	__m256i odd = _mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000u));
	return (lanes){_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)), _mm256_castsi256_ps(odd)};
}

/* Rounds as bf16_round() of the portable level; the result is the upper half, with rubbish below it. */
static inline __m256i bf16_round(vector value)
{
	__m256i bits = _mm256_castps_si256(value);
	__m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
	return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
}

static inline void bf16_store(void *to, lanes value)
{
	__m256i even = _mm256_srli_epi32(bf16_round(value.first), 16);
	_mm256_storeu_si256(to, _mm256_blend_epi16(bf16_round(value.second), even, 0x55));
}

static inline void stream_line(void *to, const void *from)
{
	__m256i *halves = to;
	const __m256i_u *source = from;
	_mm256_stream_si256(halves, _mm256_loadu_si256(source));
	_mm256_stream_si256(halves + 1, _mm256_loadu_si256(source + 1));
}

#include "math/kernels_template.h"
