/*
 * samples.h - measurements of one thing, and their quantiles.
 *
 * Holds the first SAMPLES_MOST; a pair is not asked more often than that. Pure but for memory.
 */
#ifndef NETWORK_PROBE_SAMPLES_H
#define NETWORK_PROBE_SAMPLES_H

#include <stdint.h>

#include "base/error.h"

#define SAMPLES_MOST 1024u

struct samples {
	double *at; /* owned */
	uint32_t count, capacity;
};

/* Dropped where there is no memory or no room. */
void samples_add(struct samples *samples, double value);
void samples_fini(struct samples *samples); /* accepts a zeroed struct */

/* The value that a share of them does not exceed, sorting them: 0.5 is the median. NAN: there are none. */
double samples_quantile(struct samples *samples, double share);

#endif
