/*
 * reading.h - what probes would read in a region, with other people's traffic in it.
 *
 * N - 1 rounds of disjoint pairs, one reading for each pair. docs/discovery-sim.md has the models; they were fixed before their
 * results were looked at, all but BUSY. Pure; deterministic from the seed.
 */
#ifndef STUDIES_READING_H
#define STUDIES_READING_H

#include "network/topo/matrix.h"
#include "studies/crowd.h"

enum reading_noise {
	READING_CLOUD,    /* all kinds together: the model of a cloud         */
	READING_JITTER,   /* each pair by itself                              */
	READING_STARTUP,  /* hosts' own costs                                 */
	READING_HOT,      /* the ways out of some racks, in every round       */
	READING_OUTLIERS, /* readings that are simply wrong                   */
	READING_QUIET,    /* none                                             */
	READING_BUSY,     /* CLOUD, with hosts' own costs eight times as high */
	READING_NOISES,
};
const char *reading_noise_name(enum reading_noise noise); /* NULL beyond the last */

/* Seconds of round trips. level: what all noise is multiplied with (OUTLIERS: how often), at least 0. ESP_ENOMEM. */
ESP_CHECKED enum esp_status reading_latency(const struct region *region, const struct crowd *crowd, enum reading_noise noise,
                                            double level, uint64_t seed, struct matrix *out, struct error *err);

/* Seconds per byte, the mean of both directions, which are measured at once, as are all pairs of a round. ESP_ENOMEM. */
ESP_CHECKED enum esp_status reading_bandwidth(const struct region *region, const struct crowd *crowd, uint64_t seed,
                                              struct matrix *out, struct error *err);

/*
 * The tournament: of an even number of players, or of one more than an odd number, who stands out once. Pair `pair` (0 ..
 * reading_pairs() - 1) of round `round` (0 .. reading_rounds() - 1); false: one of the two is the one too many.
 */
uint32_t reading_rounds(uint32_t machines);
uint32_t reading_pairs(uint32_t machines);
bool reading_pair(uint32_t machines, uint32_t round, uint32_t pair, uint32_t *out_a, uint32_t *out_b);

#endif
