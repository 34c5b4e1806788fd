/*
 * bench_data.h - the input of each rank of a benchmark, and the result that must come out. Pure: no I/O, no
 * allocation.
 *
 * Every rank can compute the input of every other one, so each checks its whole result, element by element and bit by
 * bit. Data that is only moved is random bits. Data that is reduced is small whole numbers, whose results are exact
 * in every type and every order of addition; averages are divided once, in the precision that the library promises.
 * Results in fixed point are compared with a bound (bench_fixed.h).
 * Along a buffer the data repeats after a prime number of elements, so that a block in a wrong place does not look
 * right.
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
	enum esp_op op; /* used only if the collective reduces */
	enum esp_numerics numerics; /* used only by calls that can be in fixed point */
	uint32_t rank, ranks;
	uint32_t root;  /* used only if the collective has a root */
	uint64_t count; /* elements of a block, as in struct esp_call */
};

/* The buffers of a call. */
struct bench_place {
	void *in, *out; /* in == out: in place, where both have the same size */
};

bool bench_reduces(enum esp_collective collective);
bool bench_has_root(enum esp_collective collective);
/* A broadcast has one buffer only, an alltoall needs two, and a barrier has none and counts as out of place. */
bool bench_has_mode(enum esp_collective collective, enum bench_mode mode);

/* Elements of a block such that a rank's larger buffer has about `bytes` bytes; at least 1, but 0 for a barrier. */
uint64_t bench_count(enum esp_collective collective, enum esp_type type, uint32_t ranks, uint64_t bytes);
/* Bytes of the larger buffer: the size in tables. */
uint64_t bench_bytes(const struct bench_shape *shape);

/* The buffers of one call within two areas of bench_bytes() each; in place, only the second is used. */
struct bench_place bench_place(const struct bench_shape *shape, enum bench_mode mode, void *first, void *second);

/* Overwrites the result with a fixed byte, then writes this rank's input. Each seed gives different data. */
void bench_fill(const struct bench_shape *shape, uint64_t seed, struct bench_place place);

/* The number of wrong elements in the result of a call on the data of bench_fill(). */
uint64_t bench_wrong(const struct bench_shape *shape, uint64_t seed, struct bench_place place);

#endif
