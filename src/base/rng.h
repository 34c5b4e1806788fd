/*
 * rng.h - seeded random numbers for tests, simulation and back-off; not for secrets.
 *
 * xoshiro256** seeded through splitmix64 (Blackman and Vigna). One seed gives one
 * sequence on every machine, which is what makes a failing seed a bug report. The
 * struct is embedded by its user and belongs to one thread.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state[4]; /* never all zero after rng_init() */
};

static inline uint64_t rng_splitmix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline void rng_init(struct rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->state[i] = rng_splitmix(&seed);
}

static inline uint64_t rng_rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

/* 64 random bits. */
static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rng_rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rng_rotl(s[3], 45);
	return result;
}

/* Uniform in 0 .. n-1, without bias (Lemire's multiplication, rejecting the uneven rest). n > 0. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	assert(n > 0);
	unsigned __int128 product = (unsigned __int128)rng_next(rng) * n;
	if ((uint64_t)product < n) {
		uint64_t uneven = (0 - n) % n; /* 2^64 mod n */
		while ((uint64_t)product < uneven)
			product = (unsigned __int128)rng_next(rng) * n;
	}
	return (uint64_t)(product >> 64);
}

/* Uniform in [0, 1), all 53 bits used. */
static inline double rng_unit(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}

/* True with probability num/den. den > 0. */
static inline bool rng_chance(struct rng *rng, uint64_t num, uint64_t den)
{
	return rng_below(rng, den) < num;
}

#endif
