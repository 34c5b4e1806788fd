/*
 * store_pump.h - workers, connections and the lanes of a parameter hub, moved by small random steps. For tests.
 *
 * Each worker has a connection to each lane. A step moves a piece of a message in or out, lets a worker start a request
 * for some chunk, says that an answer has left, or ends a connection. The pump keeps to what transport/transport.h
 * promises, and checks every answer: its number, kind, version, bits, and that its memory stays as it is until sent().
 */
#ifndef TESTS_HUB_STORE_PUMP_H
#define TESTS_HUB_STORE_PUMP_H

#include "store_job.h"

enum pump_fate {
	PUMP_CALM,     /* all rounds end, and the workers leave one by one         */
	PUMP_KILL,     /* a worker dies: all of its connections are lost, by and by */
	PUMP_CUT,      /* one connection is lost                                   */
	PUMP_MISMATCH, /* a worker has other hyper-parameters at some version      */
	PUMP_LEAVE,    /* a worker leaves before the last round                    */
};

#define PUMP_UNSENT 4u
#define PUMP_CHUNKS 16u
#define PUMP_QUEUE (PUMP_CHUNKS + JOB_GROUPS * JOB_CHANGES)

struct pump_request {
	uint8_t kind;
	uint32_t number; /* of the chunk or group */
	uint64_t version;
};

/* An answer that is being sent, and its bytes as they were when they were read. */
struct pump_answer {
	struct transport_message message;
	uint32_t done;
	float data[JOB_CHUNK_ELEMENTS];
};

struct pump_conn {
	struct pump_request queue[PUMP_QUEUE];
	uint32_t first, count; /* a ring */
	bool is_busy;          /* the first of the queue is arriving */
	uint32_t done, bytes;
	union {
		float floats[JOB_CHUNK_ELEMENTS];
		uint8_t bytes[OPTIMIZER_BYTES];
	} data;
	uint32_t messages_in, messages_out;
	uint32_t changes_sent[JOB_GROUPS];

	bool wants;
	struct pump_answer unsent[PUMP_UNSENT]; /* a ring; the last of it may be under way */
	uint32_t unsent_first, unsent_count;
	bool is_sending;
	bool is_dead, is_lost, has_left;
};

/* Of a worker for a chunk. */
struct pump_state {
	uint8_t request; /* kind, unanswered; 0: none */
	uint64_t version;
};

struct pump {
	struct job *job;
	struct rng rng;
	enum pump_fate fate;
	uint32_t culprit, cut_lane;  /* the worker that dies, differs or leaves; the lane of the connection */
	uint64_t fate_step, steps;
	struct store_lane *lanes[JOB_LANES];
	struct pump_conn *conns;     /* by worker and lane */
	struct pump_state *states;   /* by worker and chunk */
	bool is_set[PUMP_CHUNKS];    /* the first weights have come */
	uint32_t written[PUMP_CHUNKS]; /* states that worker 0 has written, and knows it */
	uint64_t seen[PUMP_CHUNKS];  /* the newest version that a worker has seen */
	uint32_t troubles[JOB_LANES];
	enum esp_status trouble;     /* the first one's */
	uint64_t fail_step;          /* when the job fails after it */
};

void pump_init(struct pump *pump, struct job *job, uint64_t seed);
void pump_fini(struct pump *pump);
/* Until all is done, or the job has failed. */
void pump_run(struct pump *pump);
/* Checks the weights, sums, counts and troubles after pump_run(). */
void pump_check_end(struct pump *pump);

#endif
