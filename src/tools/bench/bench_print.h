/*
 * bench_print.h - the results of a benchmark, as a table or as JSON. One thread; no I/O but the FILE.
 *
 * The table is that of nccl-tests, column by column, so that programs which read its output can read this one: times
 * in microseconds, GB = 10^9 bytes. The JSON has its keys and some more. Rows are written as they are given.
 */
#ifndef TOOLS_BENCH_BENCH_PRINT_H
#define TOOLS_BENCH_BENCH_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/json.h"
#include "tools/bench/bench_data.h"
#include "tools/bench/bench_sizes.h"
#include "tools/bench/bench_time.h"

struct bench_rank {
	const char *host;
	uint64_t pid;
};

/* The settings of the benchmark, and its ranks. Everything is borrowed. */
struct bench_config {
	const char *version;
	const char *start_time; /* "2026-01-31 23:59:59" */
	int argc;
	char *const *argv; /* the command line, from "bench" on */
	const struct bench_sizes *sizes;
	enum esp_type type;
	uint64_t iters, warmup;
	double seconds; /* minimum time of a measurement; 0: none */
	bool check;
	const char *calls;     /* "blocking", "async", "persistent" */
	const char *memory;    /* "alloc", "malloc" */
	const char *transport; /* the setting */
	const char *numerics;  /* of allreduces: "fixed", "fixed16"; NULL: floats, which is not worth a line */
	uint32_t ranks;
	const struct bench_rank *rank; /* ranks of them */
};

/* One size in one mode. */
struct bench_result {
	bool measured;   /* false: this collective has no such mode */
	bool checked;
	uint64_t wrong;  /* number of elements, on all ranks */
	uint64_t calls;  /* in each sample */
	const double *samples_us; /* in the order of measurement */
	size_t sample_count;
	struct bench_stats stats; /* of the samples */
	double slowest_us;        /* median of the slowest rank's time */
};

struct bench_row {
	enum esp_collective collective;
	enum esp_type type;
	enum esp_op op;
	uint32_t root;
	uint64_t bytes, count;
	const char *asked_plan; /* the plan that was asked for; NULL: the library's choice */
	const char *plan;       /* the plan that was used; "": unknown */
	struct bench_result results[BENCH_MODE_COUNT]; /* by mode */
};

struct bench_print {
	FILE *out;
	bool as_json;
	struct json json;
	const struct bench_config *config;
	uint64_t rows; /* number so far */
	uint64_t bad;  /* results with wrong elements */
	double bus_sum; /* over all results */
	uint64_t bus_count;
	/* of the table that is being written */
	enum esp_collective collective;
	const char *asked_plan;
	char plan[32];
	uint64_t table_bad, table_bus_count;
	double table_bus_sum;
};

/* Writes the beginning: settings and ranks. */
void bench_print_begin(struct bench_print *print, FILE *out, bool as_json, const struct bench_config *config);

/* Prints a row. A row of another collective or asked-for plan than the one before begins a new table. */
void bench_print_row(struct bench_print *print, const struct bench_row *row);

/* failure: why the results are incomplete; NULL: they are complete. ESP_EIO if anything could not be written. */
ESP_CHECKED enum esp_status bench_print_end(struct bench_print *print, const char *failure);

#endif
