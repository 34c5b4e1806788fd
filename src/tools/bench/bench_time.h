/*
 * bench_time.h - how often to call, when to stop, and what the times mean.
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

#define BENCH_SAMPLE_NS UINT64_C(50000) /* a batch takes at least so long ...     */
#define BENCH_CALLS_MAX (1u << 20)      /* ... if that many calls are enough      */
#define BENCH_BUDGET_SAMPLES 1000u      /* with a budget of time, about so many   */

struct bench_pace {
	uint64_t wanted;    /* samples, at least                              */
	uint64_t budget_ns; /* time to spend, at least; 0: no such wish       */
	uint64_t batch_ns;  /* what a batch should take                       */
	uint64_t calls;     /* in the next batch                              */
	uint32_t settled;   /* batches in a row that took that long           */
	uint64_t spent_ns;
	double *samples_us; /* one per batch: the first rank's                */
	double *slowest_us; /*                the slowest rank's              */
	size_t count, capacity;
};

/* Room for that many samples is enough. */
size_t bench_pace_capacity(uint64_t wanted);

/* Borrows both arrays, which have room for `capacity` samples. */
void bench_pace_init(struct bench_pace *pace, uint64_t wanted, uint64_t budget_ns, double *samples_us,
                     double *slowest_us, size_t capacity);

/* Calls to make in the next batch; 0: there are enough samples. */
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

/* Algorithm bandwidth times this is what the busiest link has to carry at least, as nccl-tests counts it. */
double bench_bus_factor(enum esp_collective collective, uint32_t ranks);

#endif
