/*
 * hub_conn.h - a connection to a parameter hub: it proves a job's key, then carries messages or becomes a lane's.
 *
 *     PROVING ──> OPERATOR ──┬──> ENDING ──> DEAD
 *        ├──────> WORKER ────┘                 ^
 *        └── refused, or given to a lane ──────┘
 *
 * The control thread's. A connection that is removed stays in memory as DEAD until the turn of the loop is over, so a
 * function that may end a connection can be called while another function still holds it.
 */
#ifndef HUB_SERVER_HUB_CONN_H
#define HUB_SERVER_HUB_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/control/msg_stream.h"
#include "hub/control/silence.h"
#include "hub/server/hub_state.h"

enum hub_conn_state {
	HUB_CONN_PROVING,  /* the handshake is under way                                   */
	HUB_CONN_OPERATOR, /* has the hub's key: creates and removes jobs                  */
	HUB_CONN_WORKER,   /* has a job's key                                              */
	HUB_CONN_ENDING,   /* the last messages leave, then it closes; nothing is read     */
	HUB_CONN_DEAD,     /* closed; freed after this turn                                */
};
#define HUB_CONN_STATES 5

struct hub_conn {
	struct loop_fd watched; /* first member */
	struct hub *hub;
	struct hub_conn *next;
	uint8_t state;          /* enum hub_conn_state */
	bool is_local;          /* from this machine's loopback: data carries no checksums */
	uint64_t since_ns;      /* when it came to this state */
	struct silence silence; /* of a worker */
	char peer[64];          /* address, for the log */
	struct handshake *hs;   /* owned; while PROVING */
	struct msg_stream *stream; /* owned; from then on */

	/* of a worker */
	uint64_t job;           /* its number */
	uint32_t worker;
	struct hub_session *session; /* that it has joined; NULL: none */
};

/* How the hub's jobs hear of a connection (hub_dispatch.c). */
struct hub_conn_events {
	/* Key and workers of a job. False: there is no such job. */
	bool (*job)(struct hub *hub, uint64_t job, uint8_t out_key[HUB_KEY_BYTES], uint32_t *out_workers);
	/* Of an OPERATOR or a WORKER; may end the connection. */
	void (*message)(struct hub_conn *conn, const struct hub_msg *msg);
	/* A proved data connection of a job that there is; takes fd. False: it fits no session. */
	bool (*lane)(struct hub_conn *conn, uint64_t session, uint32_t lane, int fd);
	/* The connection of a worker with a session is no more; why: "has closed its connection". */
	void (*lost)(struct hub_conn *conn, const char *why);
	/* Of a WORKER: nanoseconds that it may be silent; more while its program does work in which no thread answers. */
	uint64_t (*patience)(const struct hub_conn *conn);
};

/* Takes a descriptor that was accepted. */
void hub_conn_accept(struct hub *hub, int fd, bool is_local, const char *peer);
/* Puts a message into the connection's stream and sends it; a connection that takes nothing ends. Nothing if it is
 * ENDING or DEAD. */
void hub_conn_send(struct hub_conn *conn, const struct hub_msg *msg);
/* The message WHY, then the end. */
void hub_conn_refuse(struct hub_conn *conn, enum esp_status status, uint32_t worker, const char *text);
/* The other end has gone, or breaks the rules: nothing more is sent. Nothing if it is DEAD. */
void hub_conn_lose(struct hub_conn *conn, const char *why);
/* Unsent messages leave first. */
void hub_conn_end(struct hub_conn *conn);
/* Its silence begins anew, as if a byte had come. */
void hub_conn_heard(struct hub_conn *conn);
/* Once a second: late handshakes, silent workers. */
void hub_conn_look_after_all(struct hub *hub);
/* After a turn of the loop. */
void hub_conn_free_dead(struct hub *hub);
/* Closes and frees all, unsent messages included as far as the kernel takes them. */
void hub_conn_close_all(struct hub *hub);

#endif
