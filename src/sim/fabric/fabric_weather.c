#include "sim/fabric/fabric_weather.h"

#include "base/rng.h"

#define PARTS {0.1, 0.25, 0.33, 0.5, 1} /* 9, 3, 2, 1 and no other flows beside ours */

const struct fabric_weather fabric_weathers[FABRIC_WEATHERS] = {
	{"N0", PARTS, {0, 0, 0, 0, 1}},
	{"N1", PARTS, {0, 0, 0, 0.1, 0.9}},
	{"N2", PARTS, {0, 0.1, 0.1, 0.1, 0.7}},
	{"N3", PARTS, {0.5, 0, 0, 0, 0.5}},
};

const struct fabric_stragglers fabric_stragglers[FABRIC_STRAGGLERS] = {
	{"C0", 0, 1}, {"C1", 10, 2}, {"C2", 10, 4}, {"C3", 4, 2}};

static double draw(uint64_t seed, uint64_t kind, uint64_t place, uint64_t number)
{
	uint64_t state = seed * 4 + kind;

	state = rng_splitmix(&state) ^ place;
	state = rng_splitmix(&state) ^ number;
	return (double)(rng_splitmix(&state) >> 11) * 0x1.0p-53;
}

double fabric_weather_part(const struct fabric_weather *weather, uint64_t seed, uint32_t link, uint64_t period)
{
	double at = draw(seed, 0, link, period);
	uint32_t i = 0;

	while (i + 1 < FABRIC_WEATHER_RATES && at >= weather->chance[i])
		at -= weather->chance[i++];
	return weather->part[i];
}

double fabric_weather_slowness(const struct fabric_stragglers *stragglers, uint64_t seed, uint32_t worker, uint64_t step)
{
	return draw(seed, 1, worker, step) * 100 < stragglers->percent ? stragglers->times : 1;
}

double fabric_weather_rest(uint64_t seed, uint32_t worker)
{
	return draw(seed, 2, worker, 0);
}
