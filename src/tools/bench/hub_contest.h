/*
 * hub_contest.h - one worker's part in comparing ways to train: gradients in, optimized weights out, timed.
 *
 * Every worker goes through the same iterations; worker 0's times count. Each way computes the same weights from the
 * same gradients, and every element of the result is checked. Main thread; does I/O through the library.
 */
#ifndef TOOLS_BENCH_HUB_CONTEST_H
#define TOOLS_BENCH_HUB_CONTEST_H

#include <stdint.h>

#include "base/error.h"

enum hub_way {
	HUB_WAY_HUB,       /* pushpull of every tensor to the hubs of ESP_HUB_TICKET                              */
	HUB_WAY_MAPPED,    /* push of every tensor; gradients and weights lie in memory that the workers share        */
	HUB_WAY_ALONE,     /* as HUB_WAY_HUB, but no two workers push together                                    */
	HUB_WAY_MEAN,      /* as HUB_WAY_HUB, but the hub runs no optimizer: the job's is "avg"                       */
	HUB_WAY_SHARDS,    /* as HUB_WAY_HUB, but a hub on each worker's host has a part of the chunks                */
	HUB_WAY_ALLREDUCE, /* allreduce of the whole model by the plan that the library chooses, then the optimizer */
	HUB_WAY_FLAT,      /* the same by plan flat: each worker sums and sends a part, as shards do                */
	HUB_WAY_LOOP,      /* no network: this process sums `workers` gradients in memory and optimizes            */
	HUB_WAYS,
};
/* As in results and on the command line; ends with NULL. */
extern const char *const hub_way_names[HUB_WAYS + 1];

struct hub_contest {
	enum hub_way way;
	const uint64_t *elements; /* of each tensor */
	uint32_t tensors;
	const char *optimizer;       /* as math/optimizer.h parses it */
	uint32_t iterations, warmup; /* at least 1 and 0 */
	uint32_t workers;            /* HUB_WAY_LOOP */
	uint32_t threads;            /* HUB_WAY_LOOP */
};

struct hub_contest_result {
	uint32_t worker;
	double seconds, least, most; /* of an iteration: the median, and the range */
	double optimizer_seconds;    /* of an iteration on this worker; 0 of the hub */
	double idle;                 /* share of all cores' time that was idle meanwhile */
	uint64_t wrong;              /* elements of the weights that are not as expected */
};

/* ESP_EINVAL: the optimizer; else what the library says. */
ESP_CHECKED enum esp_status bench_hub_contest_run(const struct hub_contest *contest, struct hub_contest_result *out,
                                                  struct error *err);

#endif
