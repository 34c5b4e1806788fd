/*
 * fabric_contest.h - one worker's part in comparing ways to train without waiting for each other: weights in, a step of
 * computing that is slept, an update out; or, in step, an allreduce.
 *
 * Gradients are ones and the optimizer is sgd with a learning rate of 1, so each weight is the number of updates that
 * were applied to it, times -1: each weight of each read is checked. All workers begin at a given time. Main thread;
 * does I/O through the library.
 */
#ifndef TOOLS_BENCH_FABRIC_CONTEST_H
#define TOOLS_BENCH_FABRIC_CONTEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/fabric/fabric_weather.h"

#define FABRIC_CONTEST_OPTIMIZER "sgd lr=1"

struct fabric_contest {
	bool is_ring;   /* allreduces by plan ring; else asynchronous updates to the hub of ESP_HUB_TICKET */
	uint64_t bytes; /* of the model: at least 4 */
	uint64_t compute_ns;
	const struct fabric_stragglers *stragglers;
	uint64_t seed;               /* of the stragglers */
	uint64_t start_ns;           /* of clock_now_ns(); 0: now */
	uint64_t warm_ns, window_ns; /* after the start: what is counted begins, and how long it goes on */
};

struct fabric_contest_result {
	uint32_t worker;
	uint64_t counted;            /* updates applied in the window                    */
	uint64_t applied;            /* in all                                           */
	uint64_t at_source, at_offer, at_hub; /* dropped, in all                         */
	uint64_t delay_sum, delay_most;
	uint64_t version;            /* of the last read, after the worker's last update */
	uint64_t most;               /* updates that a weight of that read has          */
	uint64_t wrong;              /* weights that are not as expected                 */
	double idle;                 /* part of all cores' time in the window            */
	double late_seconds;         /* how long after the start this worker was ready   */
};

/* Errors of the library; ESP_ENOMEM. */
ESP_CHECKED enum esp_status bench_fabric_contest_run(const struct fabric_contest *contest,
                                                     struct fabric_contest_result *out, struct error *err);

#endif
