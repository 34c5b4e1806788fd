/*
 * fabric_plan.h - the ways that espalier bench fabric compares, without a run of theirs: bounds by the bytes that links
 * carry, and the same job in virtual time. Pure.
 *
 * Rates are bytes a second, each way, of payload: heads of packets have the rest of a link.
 */
#ifndef TOOLS_BENCH_FABRIC_PLAN_H
#define TOOLS_BENCH_FABRIC_PLAN_H

#include "base/error.h"
#include "sim/fabric/fabric_world.h"

enum fabric_plan_way {
	FABRIC_PLAN_BEST,  /* the scheduler, sums by streaming chains */
	FABRIC_PLAN_PAPER, /* the scheduler, sums by groups           */
	FABRIC_PLAN_PLAIN, /* asynchronous without a scheduler        */
	FABRIC_PLAN_RING,  /* in step: a ring allreduce               */
	FABRIC_PLAN_WAYS,
};
/* As in results and on the command line; ends with NULL. */
extern const char *const fabric_plan_ways[FABRIC_PLAN_WAYS + 1];

struct fabric_plan {
	uint32_t workers, delay_bound;
	uint64_t rate, hub_rate; /* of a worker's link while no other uses it, and of the hub's */
	uint64_t bytes, compute_ns, batch_ns;
	const struct fabric_weather *weather;
	const struct fabric_stragglers *stragglers;
	uint64_t period_ns; /* of the weather */
	uint64_t seed;
	uint64_t warm_ns, window_ns;
	bool is_ideal; /* the model: links share fairly, chunks take no time on their way, workers begin in step */
};

/* The part of its rate that a worker's link has, both ways, in a period. */
double bench_fabric_plan_part(const struct fabric_plan *plan, uint32_t worker, uint64_t period);

struct fabric_plan_bound {
	double per_second;  /* applied updates, at most */
	const char *limit;  /* in words: its cause     */
};
/*
 * With a scheduler: each worker computes, sends and gets as if it were alone; a sum or a tree of all takes the hub's
 * link once. Without: each update passes the hub's link by itself. The ring: the slowest worker, then the slowest link.
 */
struct fabric_plan_bound bench_fabric_plan_bound(const struct fabric_plan *plan, enum fabric_plan_way way);

/* Updates per second of the same job in virtual time, in the same weather. ESP_ECORRUPT: a promise was broken. */
ESP_CHECKED enum esp_status bench_fabric_plan_model(const struct fabric_plan *plan, enum fabric_plan_way way,
                                                    struct fabric_result *out, struct error *err);

#endif
