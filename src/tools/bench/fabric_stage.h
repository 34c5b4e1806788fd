/*
 * fabric_stage.h - where espalier bench fabric runs: a lab with a rack of workers and the hub's host, on which the hub
 * and two schedulers serve, and weather. Main thread, and a thread of its own that makes the weather.
 */
#ifndef TOOLS_BENCH_FABRIC_STAGE_H
#define TOOLS_BENCH_FABRIC_STAGE_H

#include "tools/bench/fabric_contest.h"
#include "tools/bench/fabric_plan.h"
#include "tools/bench/lab_weather.h"
#include "tools/bench/rack.h"

#define FABRIC_STAGE_DAEMONS 3u

struct fabric_stage {
	struct fabric_plan plan;
	uint64_t rate_bits, hub_rate_bits; /* of links */
	struct bench_rack rack;
	pid_t daemons[FABRIC_STAGE_DAEMONS]; /* the hub, and a scheduler for each kind of sums; 0: none */
	uint32_t jobs;                       /* created so far */
	struct lab_weather weather;
};

struct fabric_stage_result {
	uint64_t counted;   /* updates applied in the window, of all workers */
	uint64_t applied;   /* in all, and those below, too */
	uint64_t at_source, at_offer, at_hub;
	double delay_mean;
	uint64_t delay_most, wrong;
	double idle;
	double late_seconds; /* of the worker that was ready last, after the start; 0: all were in time */
};

/* Rates of links, in bits a second. On failure nothing is left. */
ESP_CHECKED enum esp_status bench_fabric_stage_open(struct fabric_stage *stage, const struct fabric_plan *plan,
                                                    uint64_t rate_bits, uint64_t hub_rate_bits, struct error *err);
void bench_fabric_stage_close(struct fabric_stage *stage);

/* One run of a way, in processes of their own. ESP_EABORTED: a signal. */
ESP_CHECKED enum esp_status bench_fabric_stage_run(struct fabric_stage *stage, enum fabric_plan_way way,
                                                   struct fabric_stage_result *out, struct error *err);

/* The line that a worker prints, and what bench_fabric_stage_run() reads. */
void bench_fabric_stage_tell(const struct fabric_contest_result *result);

#endif
