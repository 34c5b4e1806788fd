/*
 * tally.h - statistics per kind of call and class of size: how many, how large, how long.
 *
 * Times are counted in a histogram of four buckets per power of two, so a quantile is right
 * to about a tenth. Pure; its owner locks it.
 */
#ifndef NODE_OBSERVE_TALLY_H
#define NODE_OBSERVE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "node/observe/record.h"

#define TALLY_CLASSES 8u
#define TALLY_OCTAVES 42u                      /* from a nanosecond to an hour */
#define TALLY_BUCKETS (TALLY_OCTAVES * 4u + 1) /* the last one: longer       */

/* The calls of one kind and class. */
struct tally_cell {
	uint64_t count;  /* that ended well                        */
	uint64_t failed; /* that did not; they count nowhere below */
	uint64_t bytes, bus_bytes;
	uint64_t time_ns, waited_ns;
	uint64_t least_ns, most_ns;
	uint64_t buckets[TALLY_BUCKETS];
};

struct tally {
	struct tally_cell cells[RECORD_KINDS][TALLY_CLASSES];
};

/* A call that has ended. The library's own meetings at the start are not counted. */
void tally_add(struct tally *tally, const struct record *record);

/* The class of so many bytes, and the most bytes of a class; UINT64_MAX for the last one. */
uint32_t tally_class(uint64_t bytes);
uint64_t tally_class_most(uint32_t class);
/* "64", "1K" ... "more": the most bytes of a class, for people. */
const char *tally_class_name(uint32_t class);

/* The time that this share of the calls took at most; 0: there are none. */
uint64_t tally_quantile(const struct tally_cell *cell, double share);

/* How many calls took at most 2^octave nanoseconds; 0 < octave < TALLY_OCTAVES. */
uint64_t tally_within(const struct tally_cell *cell, uint32_t octave);

static inline bool tally_is_empty(const struct tally_cell *cell)
{
	return cell->count == 0 && cell->failed == 0;
}

#endif
