/*
 * hub_session.h - the workers of a job that train together now, their model, and its parts on the lanes.
 *
 *     GATHERING ── all workers have declared the same tensors, and there is memory ──> FILLING ── it is present ──┐
 *         │                                                                              │                    RUNNING
 *         └─── a worker is lost, differs or breaks the protocol; all have left ──> ENDING ── parts are back ──> freed
 *
 * A session of an asynchronous job outlives its workers: it goes on while one is there. A session's number is used
 * once, so connections of an earlier session never reach a later one. The control thread's; parts are the lane threads'
 * while they are open.
 */
#ifndef HUB_SERVER_HUB_SESSION_H
#define HUB_SERVER_HUB_SESSION_H

#include "hub/control/host_memory.h"
#include "hub/layout.h"
#include "hub/server/hub_conn.h"
#include "hub/server/hub_job.h"
#include "hub/server/hub_lane.h"

enum hub_session_state {
	HUB_SESSION_GATHERING,
	HUB_SESSION_FILLING,
	HUB_SESSION_RUNNING,
	HUB_SESSION_ENDING,
};

struct hub_worker {
	struct hub_conn *conn; /* NULL: has not joined, or is lost */
	bool has_joined, has_declared, has_left;
	uint32_t declared;     /* tensors so far */
	uint64_t lanes;        /* that it is connected to, as a bit set */
	uint32_t pid;
	char host[HUB_HOST_NAME];
	uint64_t memory, meeting; /* as it has said when it joined */
	/* Its question: the workers that a tensor waits for. */
	uint32_t asked_tensor, answers_left, leaves_left;
	uint64_t missing;
};

/* Of all parts together. */
struct hub_counts {
	uint64_t rounds, pushed, pulled, parked, version;
};
struct hub_session_rates {
	double rounds, pushed, pulled; /* chunks and bytes a second, in the last second */
};

struct hub_session {
	struct hub *hub;
	struct hub_job *job; /* NULL: was removed */
	struct hub_session *next_dead;
	uint64_t number;
	uint8_t state; /* enum hub_session_state */
	uint32_t worker_count, joined, complete, left;
	struct hub_worker *workers;

	/* The model as declared: each row by the worker that came to it first. */
	uint32_t tensor_count, known;
	bool has_count;
	struct layout_tensor *tensors;
	uint16_t *declared_by;
	struct hub_layout layout;
	uint64_t layout_bytes; /* of memory, while it was made */
	struct store_model model;
	void *memory; /* of the model */
	size_t memory_bytes, filled; /* filled: of memory, while FILLING */
	uint64_t taken_bytes; /* of the hub's quota */
	struct hub_part *parts[LAYOUT_LANES_MOST]; /* NULL: none, or it is back */
	uint32_t part_count;
	uint64_t sets[STORE_WORKERS_MOST]; /* by worker: those that it pushes for; 0: another worker pushes for it */
	struct host_memory shared[STORE_WORKERS_MOST]; /* by pusher: memory of a set on this machine, zeroed: none */
	struct hub_async *async; /* of an asynchronous job, from RUNNING on; NULL: none */
	uint64_t began_ns;
	uint64_t rounds, bytes; /* of parts that are back */
	struct hub_counts counted; /* when rates were made last */
	struct hub_session_rates rates;
};

/* A worker's messages and connections. */
void hub_session_on_join(struct hub_conn *conn, const struct hub_msg_join *join);
void hub_session_on_tensors(struct hub_conn *conn, const struct hub_msg_tensors *tensors);
void hub_session_on_ask(struct hub_conn *conn, uint32_t tensor);
void hub_session_on_leave(struct hub_conn *conn);
/* The connection is no more; why: "has closed its connection". */
void hub_session_on_lost(struct hub_conn *conn, const char *why);
/* Of an asynchronous job: the worker is told why, its connection ends, and the others go on. */
void hub_session_lose(struct hub_conn *conn, const char *why);
/* A proved data connection; takes fd. False: it fits no session. */
bool hub_session_on_lane(struct hub_job *job, uint64_t session, uint32_t worker, uint32_t lane, int fd, bool checked);
/* A message that a lane returns. */
void hub_session_on_lane_msg(const struct hub_lane_msg *msg);

/* The same message to all lanes, of a session that runs. False: the session has failed. */
bool hub_session_tell_lanes(struct hub_session *session, const struct hub_lane_msg *msg);
/* Tells all workers why, and closes its parts. Nothing if it is ENDING. */
void hub_session_end(struct hub_session *session, enum esp_status status, uint32_t worker, const char *text);
/* Nanoseconds that a worker may be silent. */
uint64_t hub_session_patience(const struct hub_session *session, uint32_t worker);
/* After a turn of the loop: a step of each session that is FILLING. */
void hub_session_fill_all(struct hub *hub);
/* The same. */
void hub_session_free_dead(struct hub *hub);

#endif
