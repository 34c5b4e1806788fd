/*
 * exec_state.h - the parts of an executor. Private to src/engine.
 *
 *     exec ─┬─ instances: the calls in flight
 *           ├─ runs: the chunks in flight, each a row of ops and where it stands in it
 *           └─ peers: per connection, the ops that wait to send and to receive
 */
#ifndef ENGINE_EXEC_STATE_H
#define ENGINE_EXEC_STATE_H

#include <assert.h>
#include <stddef.h>

#include "engine/exec.h"
#include "engine/pool.h"
#include "math/math.h"

struct run;
struct peer;

/* How far the message of an op is. Sends: OP_WAITING or OP_SENT. */
enum op_state {
	OP_WAITING,  /* nothing came yet; sends: it has not left                     */
	OP_ARRIVING, /* under way: into a slot, or straight into its target          */
	OP_PARKED,   /* all there, at data, before its turn                          */
	OP_SENT,     /* has left: its bytes are not needed any more                  */
};

/* One step of a row, with what it takes to run it. */
struct op {
	struct plan_step step;
	struct run *run;
	struct peer *peer;
	union {
		struct op *next; /* sends: among those that are ready, by index      */
		void *reply;     /* receives: where the sender wants the result; NULL: it takes a message */
	};
	uint32_t index;   /* of the message                                        */
	uint8_t state;
	bool slotted;     /* data is a slot of the pool                            */
	bool is_open;     /* receives: we said where the peer may store it         */
	bool is_stored;   /* it lies there: nothing is to be moved                 */
	union {
		const void *data; /* receives: where the message is kept            */
		uint64_t content; /* sends: transport_message.content               */
	};
};

/*
 * A chunk in flight, and the ops of its row: what a message needs of both lies together. There may be a hundred
 * thousand of them, most with one op, which are two cache lines then. Behind the ops: its scratch places.
 */
struct run {
	struct instance *instance; /* NULL: it is free */
	uint32_t at;         /* the op that is next, or waits                             */
	uint32_t term;       /* in a fold: the term that is next                          */
	uint32_t sends_left; /* messages that have not left                               */
	uint32_t op_count;
	/* ops are the row's steps from here on, without what is nothing to do at both ends */
	uint32_t row_first, row_count;
	uint8_t class, tmp_count;
	bool has_replies;    /* a term came with a place for the result                   */
	bool stores;         /* waits until all terms are here, to store the result; term is the op that is missing then */
	uint32_t digest;     /* of its call: what every message that comes is compared with */
	union {
		uint64_t chunk;
		struct run *next_free;
	};
	struct plan_piece piece;
	struct op ops[];
};
static_assert(sizeof(struct run) + sizeof(struct op) <= 128 || sizeof(void *) != 8,
              "a run of one op has two cache lines");

/* Buffers of the pool, taken when first written. */
static inline void **run_tmp(struct run *run)
{
	return (void **)(void *)&run->ops[run->op_count];
}

/* A call in flight: two cache lines. */
struct instance {
	struct exec_call call;
	uint64_t number;
	math_fold_fn *fold;
	uint32_t element_bytes;
	bool reduces;        /* fold has something to do   */
	bool finishes;       /* update has something to do */
	bool streams;        /* copies without a sum will not be read soon: around the caches */
	bool all_active;     /* every chunk has been activated */
	uint32_t active;
	enum esp_status status; /* ESP_PENDING: neither done nor free */
	uint64_t next_chunk;
	uint64_t numbered;   /* chunks up to here have their numbers, if the plan has laps */
	struct instance *next; /* waiting to be activated, done, or free */
};
static_assert(sizeof(struct instance) <= 128 || sizeof(void *) != 8, "a call in flight has two cache lines");

/* A message that came before the call that it belongs to was started here. */
struct early {
	const void *data;
	void *reply;
	uint32_t bytes;
	uint32_t call; /* its digest */
	uint8_t state; /* OP_WAITING: none */
	bool slotted;
};

/* Where the bytes of the message that is arriving go. */
enum arrival {
	ARRIVAL_PLACE, /* straight into memory: the target, or a slot                  */
	ARRIVAL_ADD,   /* combined with another operand as it comes                    */
};

/* A message that is arriving; taken from exec->incoming_free when it begins, given back when it ends. */
struct incoming {
	struct incoming *next_free;
	uint8_t arrival;
	bool direct;       /* its turn had come when it began                            */
	bool leads;        /* the arriving data is the left operand                      */
	uint8_t carried;   /* bytes of a split element that wait for the rest of it      */
	uint8_t shift;     /* of its first byte within a cache line, if the place is ours to choose */
	uint8_t carry[8];
	uint32_t index, bytes, got;
	struct op *op;     /* NULL: early                                                */
	uint8_t *target;
	const uint8_t *other; /* ARRIVAL_ADD: the other operand */
};

/*
 * The two ends of a connection. Ops that receive are found by the number of their message:
 * window[index modulo credits] for those that the peer may send now, which is all that can
 * arrive; the others wait in a ring, later[index modulo later_room], until the window reaches them. The ring is as
 * long as what is planned beyond, so every number has a place of its own there, in whatever order they come.
 */
struct peer {
	uint32_t node;
	uint32_t send_next;  /* the number of the next message to be planned    */
	uint32_t send_acked; /* the peer has consumed all below                 */
	uint32_t recv_next;  /* as above, for what we are to receive            */
	uint32_t recv_done;  /* all below were consumed                         */
	uint32_t recv_told;  /* the peer has been told so much of it            */
	uint64_t consumed;   /* bits by index modulo credits, from recv_done on */
	struct op *send_first, *send_last; /* ready to be sent, by index        */
	struct op **later;   /* to be received, beyond the window; NULL: none ever was */
	uint32_t later_room; /* a power of two, or 0                            */
	bool listed; /* in exec->ready_first */
	/* All fields that every message touches are above, in one cache line. */
	struct incoming *incoming; /* the message that is arriving, or NULL */
	struct peer *next_listed;
	const _Atomic uint32_t *revoked; /* offers: the peer took its memory back; NULL: it makes none */
	_Atomic uint32_t *storing;       /* ours, for peers that wait until we have stored */
	struct early *early; /* by index modulo credits; NULL until needed      */
	uint32_t row_sent, row_received; /* messages of the row whose lap is being numbered; else 0 */
	struct op *window[]; /* by index modulo credits                         */
};
#define CREDITS_MAX 64u /* bits of consumed */

/*
 * The lap whose chunks are being activated, of a plan that numbers several chunks together: one entry for each message
 * of this node, chunk by chunk and step by step.
 */
struct lap_message {
	struct peer *peer;
	bool sends;
	uint32_t index;
};

struct lap {
	/*
	 * the rows of its chunks, each behind a PLAN_ROW that has the number of its scratch places in place; none if the
	 * plan keeps them
	 */
	struct plan_step *steps;
	uint32_t step_count;
	uint32_t step_next; /* the row of the chunk that is activated next */
	size_t step_capacity;
	struct lap_message *messages;
	uint64_t *order; /* by turn: turn << 32 | place in messages */
	uint64_t *spare; /* as much again, to sort it */
	size_t capacity; /* of the three */
	uint32_t count;
	uint32_t most;   /* the latest turn */
	uint32_t next;   /* whose number is asked for next */
};

/*
 * Objects with cache lines of their own lie in slabs with room for one more: malloc() is much faster than
 * aligned_alloc().
 */
#define CACHE_LINE 64u
static inline void *next_line(void *at)
{
	return (uint8_t *)at + -(uintptr_t)at % CACHE_LINE;
}

/* Chunks in flight come from slabs of one size. */
#define RUN_CLASSES 32u
#define RUNS_FIRST 2u    /* that are made at a time */
#define RUNS_MOST 32u
#define RUN_SHARED 4096u /* larger ones are made one by one */
struct run_slab {
	struct run_slab *next;
	size_t run_bytes;
	uint32_t count;
	uint8_t *runs; /* behind this, at the beginning of a cache line */
};

/* Walks all chunks in flight; zeroed is at the beginning. */
struct run_walk {
	const struct run_slab *slab;
	uint32_t index;
};

#define INSTANCES_FIRST 2u
struct instance_slab {
	struct instance_slab *next;
	uint32_t count;
	struct instance *instances; /* behind this, at the beginning of a cache line */
};

/*
 * Peers come from slabs, so that each begins a cache line and none is lost between them. Each slab is twice the one
 * before: in a ring or a tree, a node has few.
 */
#define SLAB_PEERS_FIRST 2u
#define SLAB_PEERS_MOST 32u
struct peer_slab {
	struct peer_slab *next;
	uint32_t used, count;
	uint8_t *peers; /* behind this, at the beginning of a cache line */
};

struct peer_entry {
	uint32_t node;
	struct peer *peer; /* NULL: free */
};

/*
 * Fields that every message touches come first, in four cache lines: a simulation has thousands of executors, and none
 * of them is in the cache when its turn comes.
 */
struct exec {
	_Alignas(64) struct exec_config config;
	uint32_t active; /* chunks in flight */
	struct instance *queue_first, *queue_last; /* to be activated */
	struct instance *done_first, *done_last;
	struct peer *recent; /* the one that was looked up or handed out last, or NULL */
	struct peer *ready_first, *ready_last;
	struct peer_entry *peers; /* open addressing by node number */
	uint32_t peer_capacity, peer_count;
	struct instance *instance_free;
	uint64_t contents; /* numbers of contents that were given out */
	struct exec_failure failure; /* its status in the second line: the others are read when it has failed */
	struct exec_stats stats;
	struct run *run_free[RUN_CLASSES]; /* by size */
	uint32_t run_made[RUN_CLASSES];
	struct lap lap;
	struct plan_row row;

	struct run *latest; /* the chunk that was activated last, whatever has become of it; or NULL */
	struct run_slab *slabs_of_runs;
	struct instance_slab *instances;
	uint32_t instance_count;
	struct peer_slab *slabs; /* newest first */
	struct incoming *incoming_free;
	struct pool pool;
	/* where bytes land that are added as they come; there from the first call on. Kept below, or by its owner */
	uint8_t **staging;
	uint8_t *own_staging;
};

static_assert(offsetof(struct exec, failure.status) < 128 && offsetof(struct exec, run_free) < 256,
              "what every message touches comes first");

/*
 * A chunk of the usual size at once: eight ranks on two cores take 0.95 times as long between sockets as with a quarter
 * of it.
 */
#define STAGING_ALIGN TRANSPORT_SHIFTS
#define STAGING_BYTES ((256u << 10) + STAGING_ALIGN)
#define STREAMS_FROM (4u << 20) /* bytes of a call's output: it and the others' would not stay in the caches anyway */

/* exec_peer.c */
struct peer *exec_peer_seek(struct exec *exec, uint32_t node);
struct peer *exec_peer_make(struct exec *exec, uint32_t node); /* NULL: out of memory */
void exec_peer_list(struct exec *exec, struct peer *peer);
void exec_peer_queue_send(struct exec *exec, struct op *op);
bool exec_peer_owes_credit(const struct exec *exec, const struct peer *peer);
enum esp_status exec_peer_acked(struct exec *exec, struct peer *peer, uint32_t ack);
void exec_peers_close(struct exec *exec);

/* exec_receive.c */
bool exec_peer_expect(struct exec *exec, struct op *op); /* false: out of memory */
void exec_peer_consume(struct exec *exec, struct op *op);

/* Calls about one peer come several in a row. */
static inline struct peer *peer_find(struct exec *exec, uint32_t node)
{
	return exec->recent && exec->recent->node == node ? exec->recent : exec_peer_seek(exec, node);
}

/* NULL: out of memory. */
static inline struct peer *peer_get(struct exec *exec, uint32_t node)
{
	struct peer *peer = peer_find(exec, node);

	return peer ? peer : exec_peer_make(exec, node);
}

static inline bool has_failed(const struct exec *exec)
{
	return exec->failure.status != ESP_OK;
}

/* exec.c */
void exec_instance_finish(struct exec *exec, struct instance *instance, enum esp_status status);
/* Fails: node runs another call in place of this one, counted as in exec_wait. */
void exec_mismatch(struct exec *exec, uint32_t node, uint64_t call);

/*
 * exec_number.c: gives numbers to all messages of the row. The first chunk of a lap comes first. False: out of memory.
 */
bool exec_number_messages(struct exec *exec, struct run *run);
/* The lap that begins with the chunk gets its numbers, and its rows are kept unless the plan does. */
bool exec_number_lap(struct exec *exec, struct instance *instance, uint64_t chunk);
/* The row of its next chunk; borrowed until the next lap. */
struct plan_row exec_lap_row(struct lap *lap);
void exec_lap_close(struct exec *exec);

/* exec_chunk.c: what this node does with the chunk, borrowed until it is asked again; false: out of memory. */
bool exec_row_compute(struct exec *exec, const struct plan *plan, uint64_t chunk, struct plan_row *out);
/* The first chunk from this one on that is this lane's, or the number of chunks. */
uint64_t next_chunk(const struct exec *exec, const struct instance *instance, uint64_t chunk);
/* Activates chunks, oldest call first, while there is room. At the end of whatever may have made room. */
void exec_fill(struct exec *exec);
void exec_run_retire(struct exec *exec, struct run *run);
/* The next chunk in flight, in no order; NULL: that was all. */
struct run *exec_run_each(const struct exec *exec, struct run_walk *walk);
void exec_runs_close(struct exec *exec);

/* exec_store.c: sums a chunk whose terms say where its result is wanted, and stores it there. */
enum store { STORE_NOT, STORE_WAITS, STORE_DONE };
enum store exec_run_store(struct exec *exec, struct run *run);
/*
 * The op that receives what is sent back for the message of this one, if peers may store it; NULL: a message has to
 * bring it.
 */
struct op *exec_op_reply(const struct exec *exec, struct op *op);

/* exec_run.c */
uint8_t *exec_run_place(struct exec *exec, struct run *run, uint8_t place);
void exec_run_advance(struct exec *exec, struct run *run);
/* Is it this op's turn to receive? */
bool exec_run_waits_on(const struct run *run, const struct op *op);
/* Its turn has come while its message begins: where the bytes go. */
void exec_run_aim(struct exec *exec, struct run *run, struct incoming *incoming);
/* The message that exec_run_aim() aimed is complete. */
void exec_run_received(struct exec *exec, struct run *run);

#endif
