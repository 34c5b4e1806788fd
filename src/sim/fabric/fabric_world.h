/*
 * fabric_world.h - an asynchronous job in virtual time: workers, aggregators beside them, scheduler, hub and monitor.
 *
 * The scheduler (fabric/sched.h) and the hub's gate (fabric/gate.h) are those that run live; this folder has the rest:
 * workers that compute and send, those of them that add others' updates, links with weather, a monitor that reports
 * late or wrongly, and crashes. Each update carries a few integers; the hub adds what its senders have added, and its
 * sum has to be that of the same updates one after the other. A run that breaks a promise ends with a sentence in
 * `failure`.
 *
 * Adding costs no time, messages take none, and chains and trees are fluid, but for `chunk_bytes`. One seed gives one run on every
 * machine.
 */
#ifndef SIM_FABRIC_WORLD_H
#define SIM_FABRIC_WORLD_H

#include <stdio.h>

#include "base/rng.h"
#include "fabric/order.h"
#include "fabric/sched.h"
#include "sim/fabric/fabric_flows.h"
#include "sim/fabric/fabric_weather.h"

#define FABRIC_WORKERS_MOST LEDGER_WORKERS_MOST
#define FABRIC_VALUES 4u /* integers of an update */

/* Real training, if any: what happens to a worker's weights. Each may look at all that it has; none may fail. */
struct fabric_learner {
	void *user;
	void (*send)(void *user, uint32_t worker);   /* the hub's weights leave for the worker      */
	void (*receive)(void *user, uint32_t worker);/* and are there: they wait for the next step  */
	void (*begin)(void *user, uint32_t worker);  /* a step begins with them                     */
	void (*push)(void *user, uint32_t worker);   /* the step's gradient is the worker's update  */
	void (*apply)(void *user, uint32_t worker);  /* which the hub applies                       */
	bool (*is_done)(void *user);                 /* the run may end */
};

/* A rule that is broken on purpose, for the test of the checker. */
enum fabric_mutant {
	FABRIC_SOUND,
	FABRIC_NO_BOUND,     /* the gate applies updates whatever their delay is            */
	FABRIC_NO_WAIT,      /* an aggregator sends before all its inputs are there         */
	FABRIC_NO_AGAIN,     /* a worker does not hear that its sum is broken               */
	FABRIC_NO_GIVE_UP,   /* an aggregator waits without end for an input                */
	FABRIC_TWICE,        /* a worker sends anew what was applied                        */
	FABRIC_MUTANTS,
};

struct fabric_config {
	uint32_t workers, per_host, bound;
	uint32_t in_flight;      /* 1: a worker waits for its update's end; 2: it computes the next one meanwhile */
	bool has_no_sched;       /* plain asynchronous: updates and models go as they are ready */
	bool aggregates, chains; /* updates are added on the way; by streaming chains */
	uint32_t order_flags;
	bool has_no_trees;
	uint64_t batch_ns, bytes, compute_ns;
	uint64_t host_rate, hub_rate; /* bytes per second, each way */
	const struct fabric_weather *weather;
	const struct fabric_stragglers *stragglers;
	uint64_t chunk_bytes;    /* what is under way: each hop of a chain or tree but the first takes so many bytes longer */
	bool begins_within_step; /* each worker begins with a drawn part of its first step; else with all of it */
	bool has_turns;          /* links serve transfers one after the other; else they share fairly */
	bool has_one_rate;       /* both directions of a host's link have the same part of its rate */
	uint64_t period_ns, lag_ns;   /* of the weather, and until the scheduler knows it */
	uint32_t wrong_percent;       /* of reports that are wrong by up to four times     */
	uint32_t worker_kills, sched_kills; /* at drawn times before faults_ns */
	uint64_t faults_ns;
	uint64_t updates;        /* of each worker; 0: until end_ns */
	uint64_t end_ns, warm_ns; /* rates are counted from warm_ns on */
	uint64_t seed;
	enum fabric_mutant mutant;
	const struct fabric_learner *learner; /* NULL: none */
	FILE *log;               /* NULL: none; docs/fabric.md describes it */
};

struct fabric_result {
	uint64_t ended_ns, applied, applied_warm, batches;
	uint64_t ends[LEDGER_ENDS], again, sums, summed, models, deaths, restarts;
	uint64_t delay_most, delay_sum;
	uint64_t longest_ns;  /* from ready to its end */
	double per_second;    /* applied, from warm_ns on */
	char failure[256];    /* "": every promise was kept */
};

/* ESP_EINVAL: a setting is out of range; ESP_ENOMEM. A broken promise is no error: out->failure. */
ESP_CHECKED enum esp_status fabric_world_run(const struct fabric_config *config, struct fabric_result *out,
                                             struct error *err);

/* Mean time of a step of a ring allreduce over the hosts in the same weather, in ns; overlapped: it begins early. */
double fabric_world_ring(const struct fabric_config *config, bool is_overlapped);

#endif
