/*
 * bench_print.h - the results of a benchmark, as a table or as JSON.
 *
 * The table is that of nccl-tests, column by column, so that whatever reads its output reads this: times in
 * microseconds, GB = 10^9 bytes. The JSON has its keys and some more. Both are
 * written as the results come in. Writes to a FILE and knows nothing of where the numbers come from.
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

/* What was asked for, and who takes part. Everything is borrowed. */
struct bench_config {
	const char *version;
	const char *start_time; /* "2026-01-31 23:59:59" */
	int argc;
	char *const *argv; /* the command line, from "bench" on */
	const struct bench_sizes *sizes;
	enum esp_type type;
	uint64_t iters, warmup;
	double seconds; /* 0: not limited from below */
	bool check;
	const char *calls;     /* "blocking", "async", "persistent" */
	const char *memory;    /* "alloc", "malloc"                 */
	const char *transport; /* the setting                       */
	uint32_t ranks;
	const struct bench_rank *rank; /* by rank */
};

/* One size in one mode. */
struct bench_result {
	bool measured;   /* false: this collective has no such mode */
	bool checked;
	uint64_t wrong;  /* elements, on all ranks */
	uint64_t calls;  /* in each sample         */
	const double *samples_us; /* in the order in which they were taken */
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
	const char *asked_plan; /* NULL: the best known */
	const char *plan;       /* that was used; "" unknown */
	struct bench_result results[BENCH_MODE_COUNT]; /* by mode */
};

struct bench_print {
	FILE *out;
	bool as_json;
	struct json json;
	const struct bench_config *config;
	uint64_t rows; /* so far                       */
	uint64_t bad;  /* results with wrong elements  */
	double bus_sum; /* of all results              */
	uint64_t bus_count;
	/* the table that is being written */
	enum esp_collective collective;
	const char *asked_plan;
	char plan[32];
	uint64_t table_bad, table_bus_count;
	double table_bus_sum;
};

/* Writes the beginning: settings and ranks. */
void bench_print_begin(struct bench_print *print, FILE *out, bool as_json, const struct bench_config *config);

/* A row of another collective or asked-for plan than the one before begins a table of its own. */
void bench_print_row(struct bench_print *print, const struct bench_row *row);

/* failure: why there is no more; NULL if all is there. ESP_EIO if anything could not be written. */
ESP_CHECKED enum esp_status bench_print_end(struct bench_print *print, const char *failure);

#endif
