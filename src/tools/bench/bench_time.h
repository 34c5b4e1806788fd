/*
 * bench_time.h - how many calls to time, when to stop, and statistics of the times.
 *
 * Pure: no clock, no allocation. A sample is the time of a batch of calls that were made back to back,
 * divided by their number. A pace first finds a number of calls that takes long enough to be timed well, and
 * then collects samples. All ranks of a benchmark follow the same pace, as they are given the same times.
 *
 *     while ((calls = bench_pace_calls(&pace)) > 0) {
 *     	... meet, make that many calls, agree on the times ...
 *     	bench_pace_add(&pace, elapsed_ns, slowest_ns, spent_ns);
 *     }
 */
#ifndef TOOLS_BENCH_BENCH_TIME_H
#define TOOLS_BENCH_BENCH_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "espalier/espalier.h"

#define BENCH_SAMPLE_NS UINT64_C(50000) /* the least time of a batch, ... */
#define BENCH_CALLS_MAX (1u << 20)      /* ... unless it has this many calls */
#define BENCH_BUDGET_SAMPLES 1000u      /* number of samples to aim for when a time budget is given */

struct bench_pace {
	uint64_t wanted;    /* least number of samples */
	uint64_t budget_ns; /* least time to spend; 0: none */
	uint64_t batch_ns;  /* planned time of a batch */
	uint64_t calls;     /* in the next batch */
	uint32_t settled;   /* batches in a row that took at least batch_ns */
	uint64_t spent_ns;
	double *samples_us; /* one per batch: rank 0's time */
	double *slowest_us; /* the slowest rank's time */
	size_t count, capacity;
};

/* Capacity of the sample arrays that suffices if `wanted` samples are wanted. */
size_t bench_pace_capacity(uint64_t wanted);

/* Borrows both arrays, which have room for `capacity` samples. */
void bench_pace_init(struct bench_pace *pace, uint64_t wanted, uint64_t budget_ns, double *samples_us,
                     double *slowest_us, size_t capacity);

/* Number of calls to make in the next batch; 0: there are enough samples. */
uint64_t bench_pace_calls(const struct bench_pace *pace);

/* The batch took elapsed_ns on the first rank and slowest_ns on the slowest; spent_ns have passed since the start. */
void bench_pace_add(struct bench_pace *pace, uint64_t elapsed_ns, uint64_t slowest_ns, uint64_t spent_ns);

struct bench_stats {
	double min, p50, p90, max;
};

/* count > 0. Sorts the values. */
struct bench_stats bench_stats(double *values, size_t count);

/* Gigabytes (10^9) per second; 0 if no time has passed. */
double bench_alg_bw(uint64_t bytes, double time_us);

/*
 * The algorithm bandwidth times this factor is the bus bandwidth, by the definition of nccl-tests: the load of the
 * busiest link.
 */
double bench_bus_factor(enum esp_collective collective, uint32_t ranks);

#endif
