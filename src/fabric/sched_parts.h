/*
 * sched_parts.h - a job's scheduler, as sched.c and sched_{sum,chain,model}.c share it. Private to them.
 */
#ifndef FABRIC_SCHED_PARTS_H
#define FABRIC_SCHED_PARTS_H

#include "base/rng.h"
#include "fabric/batch.h"
#include "fabric/bundle.h"
#include "fabric/order.h"
#include "fabric/outlook.h"
#include "fabric/sched.h"

#define SCHED_MODELS_MOST (4 * LEDGER_WORKERS_MOST) /* bookings of models at a time */

/* A chain of hosts that pass a model on. */
struct sched_chain {
	uint32_t booking;
	uint64_t end_ns;
};

/* The link of a host, as far as it is known. */
struct sched_host {
	struct outlook in, out;
};

struct sched {
	struct sched_config config;
	struct sched_host ways[LEDGER_WORKERS_MOST]; /* by host */
	uint32_t hosts[LEDGER_WORKERS_MOST];
	struct calendar *calendar;
	struct ledger ledger;
	struct sched_link links[LEDGER_WORKERS_MOST];
	uint64_t now, batch_end_ns; /* batch_end_ns: UINT64_MAX while nothing is READY or asked for */
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
	/* sums by chains */
	struct batch_update streamed[LEDGER_WORKERS_MOST]; /* of the rows of order and workers */
	struct batch *batch; /* owned; NULL: sums do not go by chains */
	/* models */
	struct sched_chain chains[SCHED_MODELS_MOST];
	uint32_t chain_count;
	struct sched_model models[LEDGER_WORKERS_MOST];
	uint32_t model_count, model_at;
	uint64_t trees, models_decided;
	bool has_short_want; /* a model that is asked for is decided without waiting for the batch */
};

/* ---- sched.c ---- */
uint32_t sched_hub_link(const struct sched *sched);
uint32_t sched_hub_link_out(const struct sched *sched);
/* The links out of and into a worker's host. */
uint32_t sched_link_out(const struct sched *sched, uint32_t worker);
uint32_t sched_link_in(const struct sched *sched, uint32_t worker);
uint64_t sched_rate_of(uint64_t bytes, const struct calendar_span *span);
/* The worker's update is decided: booked as the span says, which ends at the hub. Its place is the next one. */
struct sched_decision *sched_decide_send(struct sched *sched, uint32_t worker, uint64_t bytes,
                                         const struct calendar_span *span, uint32_t booking);
/* Orders and books the first count rows of order[]; returns the places. */
uint32_t sched_order(struct sched *sched, uint32_t count);
/* Drops and puts off those that have no place; out_rows: by place, from 1, those that have one. */
void sched_decide_rest(struct sched *sched, uint32_t count, uint32_t out_rows[LEDGER_WORKERS_MOST + 1]);
/* The worker's update of this batch waits for the next one. */
void sched_put_off(struct sched *sched, uint32_t worker, uint32_t booking);

/* A batch ends at a multiple of its length. */
void sched_want_batch(struct sched *sched, uint64_t now);
/* ESP_EINVAL: the time runs backwards. */
ESP_CHECKED enum esp_status sched_see_time(struct sched *sched, uint64_t now, struct error *err);

/* ---- sched_chain.c ---- */
/* As sched_sum_is_possible() and sched_sum_decide(), by chains. */
bool sched_chain_is_possible(const struct sched *sched, uint32_t count);
void sched_chain_decide(struct sched *sched, uint32_t count);

/* ---- sched_model.c ---- */
/* Decides how models come to the workers that wait for them. */
void sched_model_decide(struct sched *sched);
/* Of the slowest worker that is here. */
uint64_t sched_least_steps(const struct sched *sched);
/* Bookings of models whose time is over are free again. */
void sched_model_end(struct sched *sched);

/* ---- sched_sum.c ---- */
/* Has none of the updates failed too often in sums, does no worker leave with one, and are all of one size? */
bool sched_sum_is_welcome(const struct sched *sched, uint32_t count);
/* How long a sum that begins then waits for its members. */
uint64_t sched_sum_wait(const struct sched *sched, uint64_t begin);
/* The worker's decision is of a sum that begins then. bundle 0: it is the first of a new one. Returns its number. */
uint64_t sched_sum_join(struct sched *sched, struct sched_decision *decision, uint64_t bundle, uint32_t aggregator,
                        uint64_t members, uint64_t begin);
/* May the updates of the batch that has count rows in order[] go in sums? */
bool sched_sum_is_possible(const struct sched *sched, uint32_t count);
/* Orders, drops, and decides all of them. */
void sched_sum_decide(struct sched *sched, uint32_t count);

#endif
