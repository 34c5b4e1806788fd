/*
 * chance.h - random numbers of several distributions, for models of noise.
 */
#ifndef STUDIES_CHANCE_H
#define STUDIES_CHANCE_H

#include <math.h>

#include "base/rng.h"

/* A separate sequence per purpose: one seed and purpose give the same numbers, whatever else is drawn. */
static inline void chance_init(struct rng *rng, uint64_t seed, uint64_t purpose)
{
	uint64_t mixed = seed;

	mixed = rng_splitmix(&mixed) ^ purpose;
	rng_init(rng, rng_splitmix(&mixed));
}

/* In (0, 1]. */
static inline double chance_unit(struct rng *rng)
{
	return 1 - rng_unit(rng);
}

/* Exponential, mean 1. */
static inline double chance_exponential(struct rng *rng)
{
	return -log(chance_unit(rng));
}

/* Normal, mean 0, variance 1 (Box-Muller; the second number is discarded). */
static inline double chance_normal(struct rng *rng)
{
	double radius = sqrt(2 * chance_exponential(rng)), turn = 6.283185307179586 * rng_unit(rng);

	return radius * cos(turn);
}

/* exp(width * normal): median 1. */
static inline double chance_lognormal(struct rng *rng, double width)
{
	return exp(width * chance_normal(rng));
}

/* Pareto: at least 1, above y with probability y^-exponent; clipped at `most`. */
static inline double chance_pareto(struct rng *rng, double exponent, double most)
{
	double value = pow(chance_unit(rng), -1 / exponent);

	return value < most ? value : most;
}

static inline double chance_between(struct rng *rng, double least, double most)
{
	return least + (most - least) * rng_unit(rng);
}

#endif
