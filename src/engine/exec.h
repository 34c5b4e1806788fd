/*
 * exec.h - the plan executor: runs the rows of one node, without I/O.
 *
 * One executor is one *stream* of one lane: calls are started in the same order on all nodes, several are in flight at
 * once, and each completes on its own. The executor does no I/O, reads no clock and starts no thread; a transport pulls
 * messages out of it and pushes bytes into it (the functions below have the shape of transport/transport.h). One thread
 * at a time.
 *
 * Messages between two nodes are numbered in the order of calls, chunks and steps, or as the plan has several chunks
 * numbered together (plan_lap()), which both ends know; so four bytes identify a message. A node may send the message
 * number i as soon as all up to number i - credits have been consumed; it need not wait for lower numbers to be sent. A
 * message that comes before its turn waits in a slot, at most `credits` per peer, so a connection can always be drained
 * and nothing deadlocks (docs/executor.md).
 */
#ifndef ENGINE_EXEC_H
#define ENGINE_EXEC_H

#include "base/error.h"
#include "plan/plan.h"
#include "transport/transport.h"

struct exec;

/* The next power of two, so that a number modulo credits survives the wrap at 2^32. */
static inline uint32_t exec_credits(uint32_t wanted)
{
	while (wanted & (wanted - 1))
		wanted += wanted & -wanted;
	return wanted;
}

struct exec_config {
	uint32_t node;          /* our own number */
	uint32_t credits;       /* messages a peer may send ahead, raised by exec_credits(); the same on all nodes */
	uint32_t active_chunks; /* chunks in flight; or a lap of the plan, if that is more   */
	uint32_t slot_bytes;    /* the largest chunk                                         */
	uint32_t first_index;   /* number of the first message; the same on all nodes. Zero, but for tests of the wrap */
	bool dry;               /* move no data: for the simulator and for measuring overhead */
};

/*
 * Runs at an `update` step instead of finishing the sum (averages): an optimizer. Called by the thread that drives the
 * executor, once per chunk, with the whole sum in place; the plan sends on the data that it leaves there.
 */
struct exec_update {
	void (*run)(void *context, uint64_t chunk, void *sum, uint64_t bytes);
	void *context;
};

/* A collective to run. The plan and the buffers are borrowed until it is done. */
struct exec_call {
	const struct plan *plan;
	const void *in;
	void *out;
	enum esp_type type;
	enum esp_op op;
	union {
		double factor;                    /* ESP_SCALED                                         */
		const struct exec_update *update; /* has_update: in place of finishing the sum; borrowed */
	};
	const uint8_t *lane_of; /* by chunk; NULL: all chunks are ours          */
	uint8_t lane;           /* which of them are ours                       */
	/*
	 * out lies where peers may store results by themselves, in pages of 2 to the power of this, of which only those
	 * that lie within out are theirs; 0: they may not
	 */
	uint8_t open_pages;
	bool has_update;
	bool owns_ends;         /* the pages in which out begins and ends hold nothing else: they are theirs, too */
	/* chunks of it in flight at most, but at least a lap; 0: as many as there may be. Each node as it likes */
	uint32_t window;
	uint32_t digest;        /* of everything that must be alike on all nodes: goes with every message */
	void *cookie;           /* comes back with the result                   */
};

struct exec_done {
	void *cookie;
	enum esp_status status;
};

/* The wait of the oldest unfinished chunk: for error messages and for people. */
struct exec_wait {
	uint64_t call;  /* counted from 0 on this executor                            */
	uint64_t chunk;
	uint32_t step;  /* index into the row                                         */
	uint32_t peer;  /* PLAN_NONE: none */
	bool sends;     /* all has come; what is to go to peer has not left           */
};

/* Why an executor failed, whose fault it is, and what its oldest chunk waited for then. */
struct exec_failure {
	enum esp_status status; /* ESP_OK: it has not                          */
	uint32_t node;          /* PLAN_NONE: none in particular */
	uint64_t call;          /* ESP_EMISMATCH: the call that node has another one in place of, counted as in exec_wait */
	bool waited;            /* wait is meaningful                          */
	struct exec_wait wait;
};

struct exec_stats {
	uint64_t calls, chunks, steps;
	uint64_t messages_sent, messages_received, credits_sent;
	uint64_t parked;      /* messages that were kept, in a slot or where they were offered */
	uint64_t stored;      /* results that were stored where a peer wants them */
	uint32_t slots;       /* slots of slot_bytes that were ever needed at a time */
};

ESP_CHECKED enum esp_status exec_open(const struct exec_config *config, struct exec **out, struct error *err);
void exec_close(struct exec *exec); /* NULL is fine */

/*
 * Executors that are driven together, by one thread at a time, can share the memory at which bytes land before they are
 * added: the first that needs it makes it, and the owner of the place frees it after all of them are closed. Before the
 * first call.
 */
void exec_share_staging(struct exec *exec, uint8_t **place);

/*
 * Starts a call. ESP_EINVAL: type, op or factor do not fit each other or the plan; nothing
 * has happened then. After a failure: the status of that failure. The result comes from
 * exec_take_done(), even if there is nothing to do.
 */
ESP_CHECKED enum esp_status exec_start(struct exec *exec, const struct exec_call *call, struct error *err);

/* Is there anything for exec_ready() or exec_take_done() to hand out? */
bool exec_has_news(const struct exec *exec);
/* The next finished call, in the order in which they finished; false: none. */
bool exec_take_done(struct exec *exec, struct exec_done *out);

/* The wait of the executor's oldest chunk; false: nothing is unfinished. */
bool exec_waits(const struct exec *exec, struct exec_wait *out);

/*
 * Ends all calls with this status, now and from now on; the buffers are not touched any more. The executor also does
 * this by itself: when memory runs out, when a peer turns out to run another call, when a peer took back what it had
 * offered. The thread that drives it has to check exec_failure() after each call and to tell the peers, which would
 * wait for ever.
 */
void exec_fail(struct exec *exec, uint32_t node, enum esp_status status);
struct exec_failure exec_failure(const struct exec *exec);

/*
 * As in struct transport_user; node is the peer. ESP_ECORRUPT: the peer broke the protocol, its
 * connection is not to be trusted. Anything else but ESP_OK: the executor has failed, with that
 * status, now or before; ESP_EMISMATCH: because the peer runs another call.
 */
bool exec_next(struct exec *exec, uint32_t node, struct transport_message *out);
uint32_t exec_ready(struct exec *exec);
void exec_sent(struct exec *exec, void *cookie);
enum esp_status exec_begin(struct exec *exec, uint32_t node, const struct transport_message *message);
struct transport_room exec_room(struct exec *exec, uint32_t node);
void exec_arrived(struct exec *exec, uint32_t node, uint32_t bytes);
void exec_ended(struct exec *exec, uint32_t node);
enum esp_status exec_take(struct exec *exec, uint32_t node, const struct transport_message *message);
enum esp_status exec_offer(struct exec *exec, uint32_t node, const struct transport_message *message);
enum esp_status exec_credit(struct exec *exec, uint32_t node, const struct transport_message *message);

uint32_t exec_consumed(struct exec *exec, uint32_t node);

/* The chunk in flight that a message belongs to: for observers, such as the simulator. */
struct exec_chunk {
	const void *id; /* of the chunk, while it is in flight: alike for its messages, in and out */
	uint64_t call;  /* counted from 0 on this executor */
	uint64_t chunk;
	bool adds;      /* incoming: the message is a term of a sum */
};
/* Of a message that exec_next() gave and that was not exec_sent(). */
struct exec_chunk exec_chunk_out(const struct transport_message *message);
/* Of a message from node that has not begun; false: its chunk is not in flight here. */
bool exec_chunk_in(struct exec *exec, uint32_t node, uint32_t index, struct exec_chunk *out);

struct exec_stats exec_stats(const struct exec *exec);

#endif
