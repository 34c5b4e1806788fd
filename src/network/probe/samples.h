/*
 * samples.h - measurements of one quantity, and their quantiles.
 *
 * Keeps the first SAMPLES_MOST; a pair is not asked more often. Pure but for memory.
 */
#ifndef NETWORK_PROBE_SAMPLES_H
#define NETWORK_PROBE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SAMPLES_MOST 1024u

struct samples {
	double *at; /* owned */
	uint32_t count;
	size_t capacity;
};

/* Drops the value if there is no memory or no room. */
void probe_samples_add(struct samples *samples, double value);
void probe_samples_fini(struct samples *samples); /* accepts a zeroed struct */

/* The value that this share of the samples does not exceed; sorts them. 0.5 is the median. NAN: there are none. */
double probe_samples_quantile(struct samples *samples, double share);

#endif
