/*
 * world.h - a parameter hub and its workers in one process, made from a seed.
 *
 * Node 0 of the network is the hub, node w + 1 is worker w. Each worker runs a script of its own: pulls, then a push or
 * pushpull of every tensor in an order of its own, round by round, some rounds ahead of the answers. What each answer has
 * to be is computed beforehand by plain loops. One thread.
 */
#ifndef TESTS_HUB_WORLD_H
#define TESTS_HUB_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "hub/client/client_lane.h"
#include "hub/store/store_lane.h"
#include "inproc/inproc.h"

enum {
	WORLD_WORKERS_MOST = 8,
	WORLD_LANES_MOST = 3,
	WORLD_TENSORS_MOST = 6,
	WORLD_GROUPS_MOST = 2,
	WORLD_ROUNDS_MOST = 6,
};

/* An operation of a worker on a tensor: a part on each lane, and memory that is freed when all of them are done. */
struct operation {
	struct operation *next; /* of the worker, under way */
	struct client_part parts[WORLD_LANES_MOST];
	uint32_t left;          /* parts */
	uint32_t version;       /* that its weights have to have */
	void *gradient, *weights; /* in the tensor's type; of an array of the optimizer, floats */
	enum esp_status status; /* the first that is not ESP_OK */
};

struct worker {
	uint32_t number;
	struct client_lane *lanes[WORLD_LANES_MOST];
	struct operation *operations;
	uint32_t under_way;
	uint32_t ahead;    /* operations that may be under way when a round is started */
	uint32_t round;    /* the next one */
	bool has_set;
	bool has_failed, is_killed;
};

/* What a store lane is told: the network numbers workers from 1 on. */
struct hub_end {
	struct store_lane *store;
};

struct world {
	struct rng rng;
	struct inproc *net;
	struct hub_layout layout;
	uint32_t workers, lanes, rounds;
	struct optimizer optimizers[WORLD_ROUNDS_MOST][WORLD_GROUPS_MOST]; /* by round: what holds */
	float *history[WORLD_ROUNDS_MOST + 1]; /* by version: all master weights of the model */
	struct store_model model;
	struct hub_end hub[WORLD_LANES_MOST];
	struct worker worker[WORLD_WORKERS_MOST];
	bool hub_is_killed, hub_has_failed;
};

/* Which faults there may be. */
struct world_faults {
	uint32_t corrupt_one_in; /* fragments; 0: none */
	bool kills;              /* a node, at some time */
};

void world_open(struct world *world, uint64_t seed, const struct world_faults *faults);
void world_close(struct world *world);
/* One step: an event of the network, or a worker starts a round. False: nothing is left to do. */
bool world_step(struct world *world);
/* The hub (node 0) or a worker is gone from now on. */
void world_kill(struct world *world, uint32_t node);
/*
 * All operations of nodes that live are done; without a failure all rounds are, and the model is what it has to be.
 * Returns whether there was no failure.
 */
bool world_check_end(const struct world *world);

#endif
