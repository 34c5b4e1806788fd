#include "tools/bench/bench_time.h"

#include <assert.h>
#include <stdlib.h>

#define SETTLED 2u      /* long batches in a row; a single one may have been long by accident */
/* the number of calls grows by at most this factor, because the time of a short batch is not precise */
#define STEEPEST 16u

size_t bench_pace_capacity(uint64_t wanted)
{
	/* Given a time budget, more samples may be taken, as batches may be shorter than planned. */
	return wanted > 4 * BENCH_BUDGET_SAMPLES ? wanted : 4 * BENCH_BUDGET_SAMPLES;
}

void bench_pace_init(struct bench_pace *pace, uint64_t wanted, uint64_t budget_ns, double *samples_us,
                     double *slowest_us, size_t capacity)
{
	uint64_t share_ns = budget_ns / BENCH_BUDGET_SAMPLES;

	assert(wanted > 0 && wanted <= capacity);
	*pace = (struct bench_pace){
		.wanted = wanted,
		.budget_ns = budget_ns,
		.batch_ns = share_ns > BENCH_SAMPLE_NS ? share_ns : BENCH_SAMPLE_NS,
		.calls = 1,
		.samples_us = samples_us,
		.slowest_us = slowest_us,
		.capacity = capacity,
	};
}

uint64_t bench_pace_calls(const struct bench_pace *pace)
{
	bool enough = pace->count >= pace->wanted && pace->spent_ns >= pace->budget_ns;
	return enough || pace->count == pace->capacity ? 0 : pace->calls;
}

/*
 * Calls that fill a batch if they take as long as the ones just measured, and a fifth more, so as not to miss it
 * narrowly.
 */
static uint64_t more_calls(const struct bench_pace *pace, uint64_t elapsed_ns)
{
	uint64_t most = pace->calls * STEEPEST, calls = most;

	if (elapsed_ns > pace->batch_ns / STEEPEST)
		calls = pace->calls * pace->batch_ns * 6 / (elapsed_ns * 5) + 1;
	if (calls > most)
		calls = most;
	return calls < BENCH_CALLS_MAX ? calls : BENCH_CALLS_MAX;
}

void bench_pace_add(struct bench_pace *pace, uint64_t elapsed_ns, uint64_t slowest_ns, uint64_t spent_ns)
{
	bool settled = pace->settled >= SETTLED;

	pace->spent_ns = spent_ns;
	if (!settled && elapsed_ns < pace->batch_ns && pace->calls < BENCH_CALLS_MAX) {
		pace->calls = more_calls(pace, elapsed_ns);
		pace->settled = 0;
		return;
	}
	if (!settled && ++pace->settled < SETTLED)
		return;
	pace->samples_us[pace->count] = (double)elapsed_ns / (double)pace->calls / 1e3;
	pace->slowest_us[pace->count] = (double)slowest_ns / (double)pace->calls / 1e3;
	pace->count++;
}

/* ---- statistics ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct bench_stats bench_stats(double *values, size_t count)
{
	assert(count > 0);
	qsort(values, count, sizeof(*values), compare);
	return (struct bench_stats){
		.min = values[0],
		.p50 = (values[(count - 1) / 2] + values[count / 2]) / 2,
		.p90 = values[(count * 9 + 9) / 10 - 1], /* nine in ten samples take at most this long */
		.max = values[count - 1],
	};
}

double bench_alg_bw(uint64_t bytes, double time_us)
{
	return time_us > 0 ? (double)bytes / time_us / 1e3 : 0;
}

double bench_bus_factor(enum esp_collective collective, uint32_t ranks)
{
	double others = (double)(ranks - 1) / ranks;

	switch (collective) {
	case ESP_ALLREDUCE:
		return 2 * others;
	case ESP_BROADCAST:
	case ESP_REDUCE:
		return 1;
	case ESP_BARRIER:
		return 0;
	default:
		return others;
	}
}
