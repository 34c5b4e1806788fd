/*
 * random.h - random numbers from a seed: the same sequence on every machine.
 *
 * splitmix64. Two numbers and a purpose make a stream of its own (sample 17 of the test set, the shuffle of
 * epoch 3 on rank 5), so that nobody has to draw another one's numbers to get at his own.
 */
#ifndef TRAIN_RANDOM_H
#define TRAIN_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

/* 64 random bits. */
static inline uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

enum random_purpose { RANDOM_TRAINING, RANDOM_TEST, RANDOM_WEIGHTS, RANDOM_ORDER };

static inline struct random random_stream(uint64_t seed, enum random_purpose purpose, uint64_t major, uint64_t minor)
{
	struct random random = {seed};
	random.state = random_next(&random) + (uint64_t)purpose;
	random.state = random_next(&random) + major;
	random.state = random_next(&random) + minor;
	random.state = random_next(&random);
	return random;
}

/* Uniform in [0, 1). */
static inline float random_unit(struct random *random)
{
	return (float)(random_next(random) >> 40) * 0x1.0p-24f;
}

/* Uniform in [low, high). */
static inline float random_between(struct random *random, float low, float high)
{
	return low + (high - low) * random_unit(random);
}

/* Uniform in 0 .. n-1; the bias is below n / 2^32. */
static inline uint32_t random_below(struct random *random, uint32_t n)
{
	return (uint32_t)((random_next(random) >> 32) * n >> 32);
}

/* Mean 0, variance 1, nearly normal: the sum of twelve uniform numbers needs no function of libm. */
static inline float random_normal(struct random *random)
{
	float sum = -6;
	for (int i = 0; i < 12; i++)
		sum += random_unit(random);
	return sum;
}

#endif
