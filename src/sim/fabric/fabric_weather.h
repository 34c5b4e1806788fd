/*
 * fabric_weather.h - uneven clusters: rates of each host's link and direction drawn anew every few seconds, and workers
 * that are slow now and then. The settings are the paper's.
 *
 * Drawn from the seed and the place alone, so that each way of training meets the same weather. Pure.
 */
#ifndef SIM_FABRIC_WEATHER_H
#define SIM_FABRIC_WEATHER_H

#include <stdint.h>

#define FABRIC_WEATHER_RATES 5u

struct fabric_weather {
	const char *name;
	double part[FABRIC_WEATHER_RATES], chance[FABRIC_WEATHER_RATES]; /* of the link's rate */
};

struct fabric_stragglers {
	const char *name;
	uint32_t percent; /* of steps that are slow */
	double times;     /* as long                */
};

extern const struct fabric_weather fabric_weathers[];       /* N0 (even), N1, N2, N3 */
extern const struct fabric_stragglers fabric_stragglers[];  /* C0 (even), C1, C2, C3 */
#define FABRIC_WEATHERS 4u
#define FABRIC_STRAGGLERS 4u

/* The part of its rate that a link has in its n-th period. */
double fabric_weather_part(const struct fabric_weather *weather, uint64_t seed, uint32_t link, uint64_t period);
/* How many times as long a worker's n-th step takes. */
double fabric_weather_slowness(const struct fabric_stragglers *stragglers, uint64_t seed, uint32_t worker, uint64_t step);
/* The part of its first step that a worker has still to compute when a run begins: workers are not in step. */
double fabric_weather_rest(uint64_t seed, uint32_t worker);

#endif
