/*
 * sched_parts.h - a job's scheduler, as sched.c and sched_sum.c share it. Private to them.
 */
#ifndef FABRIC_SCHED_PARTS_H
#define FABRIC_SCHED_PARTS_H

#include "base/rng.h"
#include "fabric/bundle.h"
#include "fabric/order.h"
#include "fabric/sched.h"

struct sched {
	struct sched_config config;
	struct calendar *calendar;
	struct ledger ledger;
	struct sched_link links[LEDGER_WORKERS_MOST];
	uint64_t now, batch_end_ns; /* batch_end_ns: UINT64_MAX while nothing is READY */
	uint64_t positions, batches;
	uint32_t latest_updates, latest_sent;
	struct order_update order[LEDGER_WORKERS_MOST];
	uint32_t workers[LEDGER_WORKERS_MOST]; /* of the order's rows */
	struct sched_decision decisions[LEDGER_WORKERS_MOST];
	uint32_t decision_count, decision_at;
	/* sums */
	struct rng rng; /* draws aggregators */
	uint64_t sums, summed;
	struct bundle_update bundled[LEDGER_WORKERS_MOST]; /* in the order of the places */
	uint32_t rows[LEDGER_WORKERS_MOST];                /* of these in order and workers */
};

/* ---- sched.c ---- */
uint32_t sched_hub_link(const struct sched *sched);
/* The link into a worker's host. */
uint32_t sched_link_in(const struct sched *sched, uint32_t worker);
uint64_t sched_rate_of(uint64_t bytes, const struct calendar_span *span);
/* The worker's update is decided: booked as the span says, which ends at the hub. Its place is the next one. */
struct sched_decision *sched_decide_send(struct sched *sched, uint32_t worker, uint64_t bytes,
                                         const struct calendar_span *span, uint32_t booking);
/* Drops and puts off those that have no place; out_rows: by place, from 1, those that have one. */
void sched_decide_rest(struct sched *sched, uint32_t count, uint32_t out_rows[LEDGER_WORKERS_MOST + 1]);
/* The worker's update of this batch waits for the next one. */
void sched_put_off(struct sched *sched, uint32_t worker, uint32_t booking);

/* ---- sched_sum.c ---- */
/* May the updates of the batch that has count rows in order[] go in sums? */
bool sched_sum_is_possible(const struct sched *sched, uint32_t count);
/* Orders, drops, and decides all of them. */
void sched_sum_decide(struct sched *sched, uint32_t count);

#endif
