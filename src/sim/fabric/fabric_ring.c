/*
 * fabric_ring.c - a synchronous job in the same weather: each step takes the slowest worker and an ideal ring allreduce
 * over the hosts, which goes at the rate of the slowest link.
 */
#include "base/clock.h"
#include "sim/fabric/fabric_world.h"

#define OVERLAP 0.4 /* of the computing time, until the first gradients are sent: 60 of 100 ms are hidden (the paper) */

static double slowest_link(const struct fabric_config *config, uint32_t hosts, uint64_t period)
{
	double least = 1;

	for (uint32_t link = 0; link < (config->has_one_rate ? hosts : 2 * hosts); link++) {
		double part = fabric_weather_part(config->weather, config->seed, link, period);

		least = part < least ? part : least;
	}
	return least * (double)config->host_rate;
}

/* When a ring that begins at this time, in seconds, is through. */
static double ring_end(const struct fabric_config *config, uint32_t hosts, double from)
{
	double left = 2.0 * (hosts - 1) / hosts * (double)config->bytes, period = (double)config->period_ns / (double)NS_PER_S;

	while (left > 0) {
		uint64_t number = (uint64_t)(from / period);
		double rate = slowest_link(config, hosts, number), until = (double)(number + 1) * period;

		if (from + left / rate <= until)
			return from + left / rate;
		left -= rate * (until - from);
		from = until;
	}
	return from;
}

static double slowest_step(const struct fabric_config *config, uint64_t step)
{
	double most = 1;

	for (uint32_t worker = 0; worker < config->workers; worker++) {
		double slowness = fabric_weather_slowness(config->stragglers, config->seed, worker, step);

		most = slowness > most ? slowness : most;
	}
	return most * (double)config->compute_ns / (double)NS_PER_S;
}

double fabric_world_ring(const struct fabric_config *config, bool is_overlapped)
{
	uint32_t hosts = (config->workers + config->per_host - 1) / config->per_host;
	double now = 0, until = (double)config->end_ns / (double)NS_PER_S;
	uint64_t steps = 0;

	for (; now < until; steps++) {
		double computes = slowest_step(config, steps), end = ring_end(config, hosts, now + computes * (is_overlapped ? OVERLAP : 1));

		now = end > now + computes ? end : now + computes;
	}
	return steps > 0 ? now / (double)steps * (double)NS_PER_S : 0;
}
