/*
 * reading.h - simulated readings of probes in a region with other traffic.
 *
 * N - 1 rounds of disjoint pairs, one reading per pair. docs/discovery-sim.md has the models; they were fixed
 * before the results were known, all but BUSY. Pure; deterministic from the seed.
 */
#ifndef STUDIES_READING_H
#define STUDIES_READING_H

#include "network/topo/matrix.h"
#include "studies/crowd.h"

enum reading_noise {
	READING_CLOUD,    /* all kinds together: the model of a cloud */
	READING_JITTER,   /* independent per pair */
	READING_STARTUP,  /* start-up costs of hosts */
	READING_HOT,      /* the uplinks of some racks, in every round */
	READING_OUTLIERS, /* some readings are wrong */
	READING_QUIET,    /* none                                             */
	READING_BUSY,     /* CLOUD, with eight times the start-up costs */
	READING_NOISES,
};
const char *reading_noise_name(enum reading_noise noise); /* NULL behind the last */

/* Seconds of round trips. level: factor of all noise (OUTLIERS: of the frequency), at least 0. ESP_ENOMEM. */
ESP_CHECKED enum esp_status reading_latency(const struct region *region, const struct crowd *crowd,
                                            enum reading_noise noise, double level, uint64_t seed, struct matrix *out,
                                            struct error *err);

/*
 * Seconds per byte, the mean of both directions, which are measured at the same time, like all pairs of a
 * round. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status reading_bandwidth(const struct region *region, const struct crowd *crowd, uint64_t seed,
                                              struct matrix *out, struct error *err);

/*
 * The tournament: of an even number of players; an odd number is filled up with a dummy. Pair `pair` (0 ..
 * reading_pairs() - 1) of round `round` (0 .. reading_rounds() - 1); false: one of the two is the dummy.
 */
uint32_t reading_rounds(uint32_t machines);
uint32_t reading_pairs(uint32_t machines);
bool reading_pair(uint32_t machines, uint32_t round, uint32_t pair, uint32_t *out_a, uint32_t *out_b);

#endif
