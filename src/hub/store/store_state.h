/*
 * store_state.h - the parts of a lane of a parameter hub. Private to hub/store.
 *
 *     store_receive  requests come in ──> store_chunk  terms are added, chunks updated, answers become due
 *     store_send     answers leave    <──┘
 *     store_async    updates of asynchronous jobs, in place of rounds
 */
#ifndef HUB_STORE_STORE_STATE_H
#define HUB_STORE_STORE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/store/store_lane.h"
#include "hub/store/store_pool.h"
#include "hub/store/store_value.h"

#define STORE_NO_CHUNK UINT32_MAX

/* A chunk; its number is its place among the lane's chunks. */
struct store_chunk {
	uint64_t version; /* of the weights; the round that collects leads to the next */
	uint64_t terms;   /* pushers whose term of this round has come whole */
	uint32_t added;   /* terms of pushers below this one are in the sum; it is a pusher, or the number of workers */
	uint32_t value;   /* hyper-parameters of worker 0's term: those of the round; valid once it is added */
	uint32_t sending; /* answers that borrow the weights or an array of the optimizer */
	uint32_t reads;   /* requests for arrays that are not sent whole */
	uint32_t before;  /* rounds before version 0, of an optimizer's state that worker 0 has written */
	uint32_t pulls;   /* requests that wait for the first weights, or for the update that is due */
	bool has_weights;
};

enum store_request_state {
	STORE_IDLE,    /* the worker has no unanswered request for the chunk */
	STORE_COMING,  /* its request has begun to arrive                    */
	STORE_WAITING, /* its request has come and cannot be answered yet    */
	STORE_DUE,     /* its answer stands in the queue of the worker       */
	STORE_SENDING, /* asynchronous: its answer is sent from a slot       */
};

/* Of a worker for a chunk. */
struct store_request {
	uint8_t kind;  /* enum hub_frame_kind */
	uint8_t state; /* enum store_request_state */
	uint32_t link; /* COMING, WAITING, SENDING: the slot of its data, or STORE_NO_SLOT; DUE: the next chunk in the queue */
};

/* A worker and the message that arrives from it. */
struct store_peer {
	uint32_t messages_in, messages_out; /* so many have begun, modulo 2^32 */
	uint32_t first_due, last_due;       /* queue of chunks whose answers are due; STORE_NO_CHUNK: none */
	bool is_busy;                       /* a message is arriving: */
	uint8_t kind;
	uint32_t chunk;                     /* of HUB_HYPER the parameter group */
	uint32_t value;                     /* of a term */
	uint64_t from;                      /* of HUB_HYPER: version */
	uint8_t *at;                        /* where its data goes */
	uint32_t bytes, have;
	uint32_t collected;                 /* asynchronous: chunks of its update that have come whole */
	uint8_t hyper[OPTIMIZER_BYTES];
};

struct store_lane {
	struct store_lane_config config;
	struct optimizer *optimizers; /* as config.optimizers; owned */
	uint32_t chunk_count, states; /* arrays of states that the model has */
	uint64_t sets[STORE_WORKERS_MOST]; /* by pusher: the workers that it pushes for; 0: it is none */
	uint64_t pushers;
	struct store_shared shared[STORE_WORKERS_MOST]; /* by pusher */
	const uint32_t *numbers;      /* of the chunks in the layout */
	struct store_chunk *chunks;
	struct store_request *requests; /* by chunk and worker */
	struct store_values values;
	struct store_pool pool;
	uint64_t ready;               /* workers for which an answer has become due since ready() named them */
	uint64_t left;                /* workers that contribute no more */
	uint64_t lost;                /* asynchronous: workers without a connection from now on */
	uint64_t whole;               /* asynchronous: workers whose update has come whole */
	uint64_t news_whole, news_lost; /* those of which the owner has not been told */
	uint64_t least, most;         /* version over all chunks */
	uint32_t at_least;            /* chunks that have the least version */
	enum esp_status failure;
	bool has_trouble, was_told;
	struct store_trouble trouble;
	struct store_lane_stats stats;
	struct store_peer peers[];    /* by worker */
};

static inline const struct layout_chunk *store_cut(const struct store_lane *lane, uint32_t chunk)
{
	return &lane->config.layout->chunk[lane->numbers[chunk]];
}

static inline struct store_request *store_request(const struct store_lane *lane, uint32_t chunk, uint32_t worker)
{
	return &lane->requests[(uint64_t)chunk * lane->config.workers + worker];
}

/* Array of the optimizer: 0 is the master weights, the others are its states. */
static inline float *store_array(const struct store_lane *lane, uint32_t chunk, uint32_t array)
{
	const struct store_model *model = lane->config.model;

	return (array == 0 ? model->weights : model->states[array - 1]) + store_cut(lane, chunk)->at;
}

static inline enum esp_type store_type(const struct store_lane *lane, uint32_t chunk)
{
	return hub_layout_chunk_type(lane->config.layout, lane->numbers[chunk]);
}

/* Of a gradient, and of weights as they are answered. */
static inline uint32_t store_bytes(const struct store_lane *lane, uint32_t chunk)
{
	return hub_layout_chunk_bytes(lane->config.layout, lane->numbers[chunk]);
}

/* Where a chunk's weights lie as they are answered. */
static inline void *store_weights(const struct store_lane *lane, uint32_t chunk)
{
	const struct store_model *model = lane->config.model;
	uint64_t at = store_cut(lane, chunk)->at;

	return store_type(lane, chunk) == ESP_F32 ? (void *)(model->weights + at) : (void *)(model->halves + at);
}

/* The first pusher from a worker on; the number of workers: none. */
static inline uint32_t store_next_pusher(const struct store_lane *lane, uint32_t from)
{
	uint64_t behind = from < STORE_WORKERS_MOST ? lane->pushers >> from : 0;

	return behind ? from + (uint32_t)__builtin_ctzll(behind) : lane->config.workers;
}

/* The workers that pushers stand for. */
static inline uint64_t store_contributors(const struct store_lane *lane, uint64_t pushers)
{
	uint64_t workers = 0;

	for (; pushers; pushers &= pushers - 1)
		workers |= lane->sets[__builtin_ctzll(pushers)];
	return workers;
}

static inline uint64_t store_all(const struct store_lane *lane)
{
	return UINT64_MAX >> (STORE_WORKERS_MOST - lane->config.workers);
}

/* store_trouble.c: the first trouble counts. Returns the status of err. */
enum esp_status store_blame(struct store_lane *lane, uint32_t worker, const struct error *err);
/* A worker that left is lacking in a round of this chunk. */
void store_blame_left(struct store_lane *lane, uint32_t chunk);
/* The term of this worker and the round's first one have different hyper-parameters. */
void store_blame_value(struct store_lane *lane, uint32_t chunk, uint32_t worker, uint32_t value);

/* store_chunk.c */
/* A term has come whole: into the sum if it is worker 0's, else into the slot of its request. */
void store_chunk_term(struct store_lane *lane, uint32_t chunk, uint32_t worker, uint32_t value);
/* The first weights have come whole. */
void store_chunk_set(struct store_lane *lane, uint32_t chunk);
/* An array of the optimizer has come whole from worker 0. */
void store_chunk_written(struct store_lane *lane, uint32_t chunk);
/* Weights are wanted, or an array. */
void store_chunk_pull(struct store_lane *lane, uint32_t chunk, uint32_t worker);
/* Updates the chunk if its round is complete and no answer borrows its weights. */
void store_chunk_try_update(struct store_lane *lane, uint32_t chunk);

/* The step of the optimizer with a finished sum; the version is raised by the caller. */
void store_chunk_optimize(struct store_lane *lane, uint32_t chunk, const struct optimizer *optimizer,
                          uint32_t contributors, const float *sum);
/* Says that a chunk, whose version was `before`, has this version now. */
void store_chunk_count(struct store_lane *lane, uint64_t before, uint64_t version);

/* store_async.c */
void store_async_term(struct store_lane *lane, uint32_t chunk, uint32_t worker);
void store_async_lost(struct store_lane *lane, uint32_t worker, enum esp_status why);
/* A copy of the weights, so that an answer that leaves slowly holds up no update. */
void store_async_lend(struct store_lane *lane, uint32_t chunk, uint32_t worker, struct transport_message *out);
void store_async_sent(struct store_lane *lane, uint32_t chunk, uint32_t worker);

/* store_send.c */
void store_send_due(struct store_lane *lane, uint32_t chunk, uint32_t worker);
bool store_send_next(void *user, uint32_t worker, struct transport_message *out);
uint32_t store_send_ready(void *user);
void store_send_sent(void *user, uint32_t worker, uint16_t channel, void *cookie);

#endif
