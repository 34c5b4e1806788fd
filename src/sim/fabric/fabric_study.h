/*
 * fabric_study.h - ways to train on an uneven cluster side by side: updates per second in virtual time, and updates that
 * real SGD needs to the same loss, with the best of a row of learning rates for each way.
 *
 * A ring allreduce is ideal: the slowest of all workers, then 2 (H - 1) / H of the bytes at the rate of the slowest link.
 * Bounds of asynchronous ways: each worker by itself, as if no other were in its way. Pure.
 */
#ifndef SIM_FABRIC_STUDY_H
#define SIM_FABRIC_STUDY_H

#include "sim/fabric/fabric_learner.h"

enum fabric_way {
	FABRIC_RING,         /* synchronous; computing, then the allreduce  */
	FABRIC_RING_OVERLAP, /* the allreduce begins at 0.4 of computing    */
	FABRIC_PLAIN,        /* asynchronous, no scheduler                  */
	FABRIC_SUMS,         /* the scheduler with sums, one in flight      */
	FABRIC_CHAINS,       /* sums by streaming chains, one in flight     */
	FABRIC_CHAINS_TWO,   /* and two in flight                           */
	/* FABRIC_CHAINS with something left out */
	FABRIC_NO_SUMS, FABRIC_NO_DEADLINES, FABRIC_NO_DROPS, FABRIC_NO_TREES,
	FABRIC_WAYS,
};
#define FABRIC_WAYS_USUAL FABRIC_NO_SUMS
extern const char *const fabric_way_names[];

struct fabric_cell {
	const struct fabric_stragglers *stragglers;
	const struct fabric_weather *weather;
	uint32_t hosts, per_host;
	uint64_t bytes, compute_ns, rate; /* of each link, bytes per second */
	uint64_t lag_ns;
	enum fabric_task task;
	uint32_t seeds;      /* 0: no SGD */
	uint64_t seed;       /* the first one */
	double seconds;      /* of virtual time for the rates */
};

struct fabric_row {
	enum fabric_way way;
	uint32_t bound;      /* of the delay; 0: synchronous */
	double per_second;   /* applied updates */
	double most;         /* bound of per_second; 0: none is given */
	double dropped;      /* part of all updates */
	double delay_mean;
	uint64_t delay_most;
	double lr, updates;  /* to the target, mean of the seeds, with the best lr; updates 0: it was not reached */
	double seconds;      /* updates / per_second */
};

/* The defaults: the paper's cluster. */
struct fabric_cell fabric_study_cell(void);
/* ESP_EINVAL, ESP_ENOMEM; ESP_ECORRUPT: a run broke a promise. */
ESP_CHECKED enum esp_status fabric_study_row(const struct fabric_cell *cell, enum fabric_way way,
                                             struct fabric_row *out, struct error *err);

#endif
