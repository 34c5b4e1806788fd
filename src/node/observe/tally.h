/*
 * tally.h - statistics by kind of call and class of size: how many, how large, how long. Pure; the owner locks it.
 *
 * Times are counted in a histogram of four buckets per power of two, so a quantile is right to about a tenth.
 */
#ifndef NODE_OBSERVE_TALLY_H
#define NODE_OBSERVE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "node/observe/record.h"

#define TALLY_CLASSES 8u
#define TALLY_OCTAVES 42u                      /* from a nanosecond to an hour */
#define TALLY_BUCKETS (TALLY_OCTAVES * 4u + 1) /* the last bucket: longer times */

/* The calls of one kind and class. */
struct tally_cell {
	uint64_t count;  /* calls that succeeded */
	uint64_t failed; /* calls that failed; the fields below leave them out */
	uint64_t bytes, bus_bytes;
	uint64_t time_ns, waited_ns;
	uint64_t least_ns, most_ns;
	uint64_t buckets[TALLY_BUCKETS];
};

struct tally {
	struct tally_cell cells[RECORD_KINDS][TALLY_CLASSES];
};

/* Adds a call that has ended. Barriers that the library starts itself at the beginning are not counted. */
void tally_add(struct tally *tally, const struct record *record);

/* The class of a call of this many bytes, and the most bytes of a class; UINT64_MAX for the last one. */
uint32_t tally_class(uint64_t bytes);
uint64_t tally_class_most(uint32_t class);
/* "64", "1K" ... "more": the most bytes of a class, for people. */
const char *tally_class_name(uint32_t class);

/* The time within which this share of the calls ended; 0: there are no calls. */
uint64_t tally_quantile(const struct tally_cell *cell, double share);

/* The number of calls that took at most 2^octave nanoseconds; 0 < octave < TALLY_OCTAVES. */
uint64_t tally_within(const struct tally_cell *cell, uint32_t octave);

static inline bool tally_is_empty(const struct tally_cell *cell)
{
	return cell->count == 0 && cell->failed == 0;
}

#endif
