/*
 * fabric_world_state.h - the state that the files of the modelled job share. Nothing else includes it.
 */
#ifndef SIM_FABRIC_WORLD_STATE_H
#define SIM_FABRIC_WORLD_STATE_H

#include "sim/fabric/fabric_world.h"

#define FABRIC_REPORTS_MOST 8u

enum fabric_doing {
	FABRIC_NO_UPDATE,
	FABRIC_READY, /* waits for a decision         */
	FABRIC_WAITS, /* for the time that was decided; an aggregator: for its members */
	FABRIC_SENDS, /* the gate knows of it          */
};

struct fabric_worker {
	bool is_dead, is_registered, is_computing, is_stalled, is_asking;
	bool gets_directly;            /* the model, without a scheduler */
	uint8_t doing;                 /* enum fabric_doing */
	uint64_t until_ns, steps;      /* of the step that it computes */
	uint64_t step_from, model_from, incoming_from; /* versions: of the step, of the model that waits, of that under way */
	uint64_t made;                 /* updates; the latest one's number changes when it is announced again */
	uint64_t number, computed_from, ready_ns, start_ns, epoch;
	uint64_t flow_ns, took_ns;     /* its transfer, but for chains: since when, and how long it took; took_ns 0: not */
	uint32_t attempts;             /* to send it within a sum that have failed */
	struct sched_decision decision;
	struct sched_model model;      /* that comes */
	bool has_model_decision;
	uint64_t values[FABRIC_VALUES];
	/* an aggregator */
	uint64_t wait_until_ns, got;   /* got: members whose updates are in the sum, as a bit set with its own */
	uint64_t sum[FABRIC_VALUES];   /* that it sends: its own update, if it adds no others */
};

/* One chain of a tree. */
struct fabric_tree {
	bool is_open, is_sending;
	uint64_t workers, start_ns, rate;
};

struct fabric_world {
	const struct fabric_config *config;
	struct fabric_result *result;
	struct rng rng;
	uint32_t hosts;
	uint64_t now, period, last_fault_ns;
	struct sched *sched; /* NULL: it is down, or there is none */
	uint64_t epoch, sched_up_ns, next_kill_ns, next_sched_kill_ns;
	uint32_t kills_left, sched_kills_left;
	struct gate gate;
	uint64_t hub[FABRIC_VALUES], shadow[FABRIC_VALUES]; /* by sums that came; by single updates */
	uint64_t sum_base;      /* version before the sum that was applied last */
	uint64_t sum_versions;  /* bit i: the gate has still to tell which member made version sum_base + 1 + i */
	uint64_t applied_made[FABRIC_WORKERS_MOST];
	struct fabric_worker workers[FABRIC_WORKERS_MOST];
	struct fabric_tree trees[FABRIC_WORKERS_MOST];
	struct fabric_flows flows;
	uint64_t report_at[FABRIC_REPORTS_MOST], report_period[FABRIC_REPORTS_MOST];
	uint32_t reports;
};

enum fabric_kind { FABRIC_TO_HUB, FABRIC_TO_AGGREGATOR, FABRIC_TREE, FABRIC_MODEL };

static inline uint64_t fabric_cookie(enum fabric_kind kind, uint32_t number)
{
	return (uint64_t)kind << 32 | number;
}

static inline uint32_t fabric_host(const struct fabric_world *world, uint32_t worker)
{
	return worker / world->config->per_host;
}

static inline uint32_t fabric_out(const struct fabric_world *world, uint32_t worker)
{
	return fabric_host(world, worker);
}

static inline uint32_t fabric_in(const struct fabric_world *world, uint32_t worker)
{
	return world->hosts + fabric_host(world, worker);
}

static inline uint32_t fabric_hub_in(const struct fabric_world *world)
{
	return 2 * world->hosts;
}

static inline uint32_t fabric_hub_out(const struct fabric_world *world)
{
	return 2 * world->hosts + 1;
}

/* fabric_world.c */
__attribute__((format(printf, 2, 3))) void fabric_fail(struct fabric_world *world, const char *format, ...);
void fabric_report(struct fabric_world *world, uint64_t period); /* the monitor's, of the weather in that period */

/* fabric_worker.c */
void fabric_begin_step(struct fabric_world *world, uint32_t worker);
void fabric_end_step(struct fabric_world *world, uint32_t worker);
void fabric_go_directly(struct fabric_world *world, uint32_t worker); /* its update, without a scheduler */
void fabric_end_update(struct fabric_world *world, uint32_t worker, uint8_t how, uint64_t delay);
void fabric_again(struct fabric_world *world, uint32_t worker); /* its sum is broken: it is announced anew */
void fabric_register(struct fabric_world *world, uint32_t worker);
void fabric_deliver_model(struct fabric_world *world, uint32_t worker);
void fabric_ask_model(struct fabric_world *world, uint32_t worker);

/* fabric_hub.c */
void fabric_pump(struct fabric_world *world); /* whatever the gate lets go */

/* fabric_sched.c */
void fabric_start_scheduler(struct fabric_world *world);
void fabric_run_scheduler(struct fabric_world *world);
uint64_t fabric_draw_fault(struct fabric_world *world, uint32_t left); /* when the next one of so many is */
void fabric_make_faults(struct fabric_world *world);

/* fabric_send.c */
void fabric_send_offer(struct fabric_world *world, uint32_t worker);
void fabric_send_trees(struct fabric_world *world);
void fabric_send_due(struct fabric_world *world);       /* whatever begins by now */
uint64_t fabric_send_next(const struct fabric_world *world);
void fabric_send_ended(struct fabric_world *world, uint64_t cookie);
void fabric_send_lost(struct fabric_world *world, uint32_t worker); /* transfers in which the worker has a part */
void fabric_send_forget(struct fabric_world *world, uint32_t worker); /* its update is broken off */

#endif
