/*
 * bench_data.h - what the ranks of a benchmark give, and what must come out.
 *
 * Pure: no I/O, no allocation. Every rank knows what every other one gives, so each can check all
 * that it gets, element by element and bit by bit. Data that is only moved is made of random bits. Data that is
 * reduced is made of small whole numbers whose results are exact in every type and every order of addition;
 * averages are divided once, in the precision that the library promises.
 *
 * Along a buffer the data repeats after a prime number of elements, so that nothing that
 * arrives in a wrong place looks right.
 */
#ifndef TOOLS_BENCH_BENCH_DATA_H
#define TOOLS_BENCH_BENCH_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "espalier/espalier.h"

#define BENCH_SCALE 2.0 /* the factor of ESP_SCALED */

enum bench_mode {
	BENCH_OUT_OF_PLACE,
	BENCH_IN_PLACE,
};
#define BENCH_MODE_COUNT 2

/* One rank's view of one call. */
struct bench_shape {
	enum esp_collective collective;
	enum esp_type type;
	enum esp_op op; /* counts only where the collective reduces */
	uint32_t rank, ranks;
	uint32_t root;  /* counts only where there is one */
	uint64_t count; /* elements of a block, as in struct esp_call */
};

/* Where a call finds its data, and leaves its result. */
struct bench_place {
	void *in, *out; /* in == out: in place, where both have the same size */
};

bool bench_reduces(enum esp_collective collective);
bool bench_has_root(enum esp_collective collective);
/* A broadcast has one buffer only, an alltoall needs two, a barrier none: it counts as out of place. */
bool bench_has_mode(enum esp_collective collective, enum bench_mode mode);

/* Elements of a block such that the larger buffer of a rank has about `bytes` bytes; at least 1, but 0 for a barrier. */
uint64_t bench_count(enum esp_collective collective, enum esp_type type, uint32_t ranks, uint64_t bytes);
/* Bytes of the larger buffer: what tables call the size. */
uint64_t bench_bytes(const struct bench_shape *shape);

/* The buffers of one call within two areas of bench_bytes() each; in place, only the second is used. */
struct bench_place bench_place(const struct bench_shape *shape, enum bench_mode mode, void *first, void *second);

/* Spoils the result, then writes what this rank gives. Another seed gives other data. */
void bench_fill(const struct bench_shape *shape, uint64_t seed, struct bench_place place);

/* Elements of the result that are wrong after a call on what bench_fill() wrote. */
uint64_t bench_wrong(const struct bench_shape *shape, uint64_t seed, struct bench_place place);

#endif
