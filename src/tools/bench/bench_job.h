/*
 * bench_job.h - one rank of a benchmark: its membership in the job, and its buffers. Main thread; all ranks call each
 * function in the same order. Does I/O through the library.
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
	uint64_t *times_ns; /* two of each rank */
	void *areas[2];     /* the buffers of all calls, large enough for each */
	double *samples;    /* BENCH_JOB_ARRAYS of them: rank 0's and the slowest rank's of each mode, and one to sort in */
	size_t capacity;    /* samples in each array */
	bool is_misused;    /* opening failed because the options do not fit the job */
	char plan[32];      /* of the last call; "" unknown */
};

/* Joins the job and allocates everything. On failure, *job is closed and *err has the reason. */
ESP_CHECKED enum esp_status bench_job_open(struct bench_job *job, const struct bench_options *options,
                                           struct esp_error *err);

/* Leaves the job. May be called twice. */
void bench_job_close(struct bench_job *job);

/*
 * The hosts and processes of all ranks: job->ranks entries, which the caller frees; the host names last until the job
 * is closed.
 */
ESP_CHECKED enum esp_status bench_job_ranks(struct bench_job *job, struct bench_rank **out);

/* The library's last error, or if it has none a text for this status. */
void bench_last_error(enum esp_status status, struct esp_error *err);

/* How allreduces of the benchmark add: ESP_NUMERICS_FLOAT, or in fixed point. */
enum esp_numerics bench_job_numerics(const struct bench_job *job);

/* The shape of a call of about `bytes` bytes. */
struct bench_shape bench_job_shape(const struct bench_job *job, enum esp_collective collective, uint64_t bytes);

#endif
