/*
 * bench_job.h - one rank of a benchmark: its place in the job, and its buffers.
 *
 * All functions are called by all ranks alike.
 */
#ifndef TOOLS_BENCH_BENCH_JOB_H
#define TOOLS_BENCH_BENCH_JOB_H

#include "base/error.h"
#include "tools/bench/bench_options.h"
#include "tools/bench/bench_print.h"

#define BENCH_JOB_ARRAYS (2 * BENCH_MODE_COUNT + 1)

struct bench_job {
	const struct bench_options *options; /* borrowed */
	struct esp_context *context;
	struct esp_group *world;
	uint32_t rank, ranks;
	uint64_t seed;      /* of the data of the last check; the same on all ranks */
	uint64_t *times_ns; /* two of each rank                                     */
	void *areas[2];     /* the buffers of all calls, large enough for each      */
	double *samples;    /* BENCH_JOB_ARRAYS: rank 0's and the slowest's of each mode, and one to sort in */
	size_t capacity;    /* samples in each array                                */
	bool is_misused;    /* why it could not be opened: the options do not fit the job */
	char plan[32];      /* of the last call; "" unknown                         */
};

/* Joins, and allocates everything. On failure, *job is closed and *err says why. */
ESP_CHECKED enum esp_status bench_job_open(struct bench_job *job, const struct bench_options *options,
                                           struct esp_error *err);

/* Leaves the job. Closing twice is fine. */
void bench_job_close(struct bench_job *job);

/* Who takes part: job->ranks entries, the caller's to free(); their hosts last until the job is closed. */
ESP_CHECKED enum esp_status bench_job_ranks(struct bench_job *job, struct bench_rank **out);

/* Why something of the library has failed with this status, in words at least. */
void bench_last_error(enum esp_status status, struct esp_error *err);

/* The shape of a call of about `bytes` bytes. */
struct bench_shape bench_job_shape(const struct bench_job *job, enum esp_collective collective, uint64_t bytes);

#endif
