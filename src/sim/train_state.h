/*
 * train_state.h - the parts of a run of training. Private to src/sim/train*.c.
 *
 *     train ─┬─ spreads: the broadcasts of an iteration, in the order of sending (with servers)
 *            ├─ sums: the reduces or allreduces, in the order in which gradients are ready
 *            └─ workers: where each stands in its iteration
 */
#ifndef SIM_TRAIN_STATE_H
#define SIM_TRAIN_STATE_H

#include "sim/train.h"

/* A collective that every iteration runs once. */
struct train_call {
	const struct plan *plan;
	uint32_t stream;
	uint32_t members;      /* of the stream: the plan's nodes          */
	uint32_t first, count; /* its content: items, or gradients */
	uint32_t server;       /* with servers: which of them              */
	uint32_t owner;        /* the member that starts it or has its sum; PLAN_NONE: all workers do */
	bool is_sum;
	bool is_fixed;         /* spreads: no gradient of it is summed     */
	uint32_t rotation;     /* the stream's first member is this worker */
	uint32_t next;         /* sums with servers: the spread of the same parameter; LOAD_NONE: it is not known which */
	uint32_t rounds;       /* sums: how many iterations of it are complete */
	uint32_t waits;        /* sums without an owner: workers that have no result of this round yet */
};

struct train_worker {
	struct train *train;
	uint32_t rank;
	uint32_t iteration;   /* that it computes, or waits to compute           */
	bool may_forward;     /* the backward pass before is over                */
	bool computes;
	uint32_t layer;       /* the next one that is not computed or being computed */
	uint32_t next_sum;    /* the next call to start                          */
	double forward_from;  /* the first layer began                           */
	double backward_from;
	uint32_t *needs;      /* by layer: what has not come for it              */
};

struct train_calls {
	struct train_call *calls;
	uint32_t count;
};

struct train_plan; /* a plan that is kept, by what it was made of */

struct train {
	struct train_config config;
	const struct load *load;
	struct agenda agenda;
	struct cluster *cluster;
	double speed;
	uint32_t iterations;
	uint32_t servers;   /* 0: a mechanism without them                    */
	uint32_t *place;    /* vertices: workers, servers, extra nodes        */
	uint32_t *group_of; /* rack of each worker and server, those of workers first */
	uint32_t groups, worker_groups;
	uint32_t *plan_group_of; /* of the workers and one server: what plans are told */
	/* nodes of plans that hold no data: a switch, or one per group and one above; or a hub per group of workers */
	uint32_t extras;

	struct train_plan *plans;
	struct train_calls spreads, sums;
	struct train_call **listed; /* all calls, stream by stream in the order in which an iteration starts them */
	uint32_t *listed_first;     /* of each stream, and one behind the last                                    */
	uint32_t streams;
	uint32_t *needs;    /* by layer: what a forward pass waits for */
	struct train_worker *workers;

	uint32_t iteration;   /* the one under way; without the barrier: that the furthest sum has completed */
	uint32_t sums_left;   /* of it                                                                       */
	uint32_t first_layer; /* without the barrier: the call of the first layer, whose completion is measured */
	double first_s, last_s;
	enum esp_status status; /* of the first call that could not be started */
	struct error *err;
};

/*
 * An executor lets a peer send so many messages ahead, a limit that the systems of the model do not have. So as many
 * calls share a stream as have no more messages than that between two nodes, and none of their chunks waits for
 * another.
 */
#define TRAIN_CREDITS 64u
/* Most messages of a chunk from one node to another: up with servers, up and down without. */
static inline uint32_t train_ways(const struct train *train)
{
	return train->servers ? 1 : 2;
}

/* train_calls.c */
ESP_CHECKED enum esp_status sim_train_make_calls(struct train *train, struct error *err);
/* When the cluster is there. */
ESP_CHECKED enum esp_status sim_train_make_streams(struct train *train, struct error *err);
void sim_train_drop_calls(struct train *train);
/* The content of a message of that stream and call. */
struct train_cargo sim_train_cargo(const struct train *train, uint32_t stream, uint64_t call);

/* train_worker.c */
ESP_CHECKED enum esp_status sim_train_make_workers(struct train *train, struct error *err);
void sim_train_drop_workers(struct train *train);
/* Everything is there: the first iteration without servers, or the next one after the barrier. */
void sim_worker_begin(struct train_worker *worker);
/* Something of this layer has come. */
void sim_worker_got(struct train_worker *worker, uint32_t layer);

/* train_links.c: which link was busy for the longest. */
struct train_link sim_train_busiest(const struct train *train);

/* train.c: starts a call on a member; remembers if that fails. */
void sim_train_start(struct train *train, struct train_call *call, uint32_t member);

#endif
