/*
 * train.h - iterations of training in virtual time: computing, and the collectives that it waits for.
 *
 *     with servers          distribution ─▶ forward ─▶ backward ─▶ aggregation ─▶ barrier
 *     without               forward ─▶ backward ─▶ allreduce ─▶ barrier
 *
 * Distribution: each server sends its parameters, in the load's order. Forward: layer by layer, each as soon as its
 * parameters are there. Backward: begins when the forward pass of this worker ends; each gradient goes out when it is
 * ready. Aggregation: a parameter's sum is complete when all workers' gradients are at its server. Barrier: the next
 * iteration begins when all sums are complete (all results are everywhere). So the phases of different workers overlap
 * as the network lets them, and every transfer is a message of a plan that the executor runs (cluster.h).
 *
 * Without the barrier a server sends a parameter as soon as its sum is complete, and a worker begins its next forward
 * pass with what has arrived.
 */
#ifndef SIM_TRAIN_H
#define SIM_TRAIN_H

#include "sim/cluster.h"
#include "sim/workload/load.h"
#include "sim/workload/mechanism.h"

/* The content of a message. */
struct train_cargo {
	bool is_gradient;   /* otherwise a parameter */
	uint32_t parameter; /* of the model, the first if there are several; LOAD_NONE: not known */
	uint32_t count;
};

/* Events, for drawing; each may be NULL. */
struct train_watch {
	void *user;
	void (*computed)(void *user, uint32_t worker, bool forward, uint32_t iteration, double from, double to);
	void (*moved)(void *user, const struct cluster_message *message, const struct train_cargo *cargo);
};

struct train_config {
	const struct load *load;           /* borrowed; says how many workers */
	const struct mechanism *mechanism;
	/*
	 * Borrowed. The first hosts are the workers, the next ones the servers. A hub takes the last host of each rack.
	 * Servers and hubs for which no host is left share one with a worker. A switch that adds or copies stands in every
	 * rack, and one above them where there are several.
	 */
	const struct topology *topology;
	uint32_t servers;    /* at least 1; not looked at without servers                                       */
	bool even_split;     /* a part of every parameter on every server; otherwise whole ones, round-robin    */
	bool block;          /* servers send everything to one worker after the other; otherwise parameter by parameter */
	bool no_barrier;
	/*
	 * every two nodes have a connection, and those share links fairly; otherwise a link has one message at a time, in
	 * order
	 */
	bool fluid;
	bool cut_through_sums; /* a switch adds as data streams in; otherwise when a message is there           */
	uint32_t split;      /* messages of a parameter; 0: as the mechanism has it                             */
	double compute;      /* how many times faster than the load says all computing is; 0: 1                 */
	uint32_t iterations; /* 0: 1, without the barrier 3                                                     */
	struct train_watch watch;
};

enum train_kind { TRAIN_WORKER, TRAIN_SERVER, TRAIN_HUB, TRAIN_SWITCH };

/* The links of one host, or those of a switch to what is above it. Bytes and seconds are per iteration. */
struct train_link {
	enum train_kind kind;
	uint32_t number;          /* of its kind; of a switch: nothing                     */
	char name[TOPOLOGY_NAME]; /* in the topology                                       */
	uint64_t out_bytes, in_bytes;
	double out_s, in_s;       /* how long that takes at the rates of the beginning     */
	bool in_turn;             /* one way after the other, as distribution and aggregation are; otherwise both at once */
	uint32_t alike;           /* how many of its kind are as busy within 1 %, itself included */
};

struct train_result {
	/*
	 * Of one iteration, on average. Without the barrier: from the moment when the first layer's parameters were summed
	 * for the first time to the last, by the iterations between.
	 */
	double iteration_s;
	uint64_t class_bytes[TOPOLOGY_CLASSES]; /* per iteration */
	uint64_t messages;                      /* per iteration */
	struct train_link busiest;              /* the one that is busy for the longest */
};

/* For how long a link is busy in an iteration. */
static inline double train_link_busy_s(const struct train_link *link)
{
	double longer = link->out_s > link->in_s ? link->out_s : link->in_s;

	return link->in_turn ? link->out_s + link->in_s : longer;
}

/*
 * ESP_EINVAL: the error says why it does not fit; ESP_ESTATE: a worker waits for a message that is never sent;
 * ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status sim_train_run(const struct train_config *config, struct train_result *out,
                                          struct error *err);

#endif
