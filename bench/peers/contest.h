/*
 * contest.h - the one way in which every peer is measured, and the same in which `espalier bench` measures.
 *
 * A program tells how its library sums floats over all ranks, how it lets ranks meet and how it
 * adds up a number; contest() does the rest, so that no peer is measured in a way of its own.
 *
 * For each size, first in place and then out of place:
 *
 *   1. check: a call on fresh data, after which every element on every rank is compared with what it must be;
 *   2. batches: the ranks meet, then make k calls one after the other without meeting in between. A sample is the
 *      time of rank 0 from having left the meeting until its last call returned, divided by k. k is such that a batch
 *      takes 50 us, or a thousandth of the budget if that is longer: 1 for large buffers. The batches with
 *      which k is found are the warm-up and do not count;
 *   3. check once more.
 *
 * The terms are small whole numbers, so that sums are exact in any order of addition.
 *
 * One process per rank, called from its main thread.
 */
#ifndef CONTEST_H
#define CONTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONTEST_SIZES_MAX 64

struct contest_options {
	int ranks;                       /* 0: not given */
	size_t sizes[CONTEST_SIZES_MAX]; /* bytes, each a multiple of 4 */
	int size_count;
	double seconds;      /* budget per size, shared by in place and out of place */
	uint64_t iters;      /* samples that are taken even when the time is over */
	bool in_place_only;  /* nothing is measured out of place */
	const char *peer;    /* words that the output repeats */
	const char *variant; /* and, to some programs, the algorithm */
};

/* Each call is made by all ranks at the same point; what goes wrong ends the process. */
struct contestant {
	int rank, ranks;
	void *context;
	/* Called before the calls that write to a buffer, and with NULL and 0 after the last. May be NULL. */
	void (*prepare)(void *context, float *out, size_t count);
	/* out[i] = the sum of in[i] over all ranks; in == out is in place. */
	void (*allreduce)(void *context, const float *in, float *out, size_t count);
	void (*barrier)(void *context);
	/* The sum over all ranks, known to each. */
	int64_t (*total)(void *context, int64_t value);
};

/* Ends the program with a usage text when the options make no sense. */
struct contest_options contest_parse(int argc, char **argv);

/* Prints one line of JSON per size and place on rank 0. Returns the wrong elements on all ranks. */
int64_t contest(const struct contestant *contestant, const struct contest_options *options);

#ifdef __cplusplus
}
#endif

#endif
