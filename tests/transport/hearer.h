/*
 * hearer.h - a lane that waits for a broadcast of three chunks from rank 0, on channel 0; channel 1 is open too.
 *
 * What the tests of faults have in common: one end is the library's, the other is written by hand.
 */
#ifndef TESTS_TRANSPORT_HEARER_H
#define TESTS_TRANSPORT_HEARER_H

#include "engine/lane.h"

#define CHUNK 60u
#define CHUNKS 3u
#define CREDITS 4u
#define SLOT 100u        /* the longest message */
#define CALL 0x600dca11u /* the digest of the call */

struct hearer {
	struct plan *plan;
	struct lane *lane;
	uint8_t out[CHUNK * CHUNKS];
};

void hearer_open(struct hearer *hearer);
void hearer_close(struct hearer *hearer);
/* The same call on channel 1, into memory of the caller's. */
void hearer_start_other(struct hearer *hearer, void *out);

/* What the root has to say. */
void hearer_fill(uint8_t data[CHUNK * CHUNKS]);

#endif
