/*
 * peer_port_state.h - a worker's port for other workers, and their connections. Private to peer_port.c, aggregator.c
 * and relay.c.
 */
#ifndef FABRIC_WORKER_PEER_PORT_STATE_H
#define FABRIC_WORKER_PEER_PORT_STATE_H

#include <pthread.h>

#include "base/loop.h"
#include "base/pace.h"
#include "fabric/worker/peer_port.h"
#include "node/auth/handshake.h"
#include "wire/fabric_msg.h"

#define PEER_WORKERS_MOST 64u

enum peer_conn_state {
	PEER_CONN_PROVING,
	PEER_CONN_PROVED,   /* its first message is awaited              */
	PEER_CONN_GIVING,   /* an update comes                           */
	PEER_CONN_FETCHING, /* the model leaves                          */
	PEER_CONN_DEAD,     /* freed when the turn of the loop is over   */
};

struct peer_conn {
	struct loop_fd watched;  /* first member */
	struct loop_timer paced; /* FETCHING: when something may leave */
	struct peer_port *port;
	struct peer_conn *next;
	uint8_t state;           /* enum peer_conn_state */
	uint64_t heard_ns;       /* when bytes were moved last */
	struct handshake *hs;    /* owned; while PROVING */
	uint32_t worker;
	uint8_t head[FABRIC_MSG_BYTES]; /* later the message behind the data */
	size_t head_bytes;
	uint64_t at;             /* bytes of the update or model that have come or left */
	uint32_t crc;            /* of them */
	/* GIVING */
	struct fabric_msg_give give;
	struct aggregator_input *input; /* a reference of its own */
	/* FETCHING */
	struct fabric_msg_fetch fetch;
	struct relay_model *model; /* a reference of its own; NULL: it is not announced yet */
	struct pace pace;
};

struct peer_port {
	struct peer_port_config config;
	struct ticket ticket;
	struct loop_fd watched;
	uint16_t number;
	struct loop loop;
	struct loop_timer seconds;
	struct loop_task progress;  /* there is more of the model, or another one */
	struct peer_conn *conns;
	uint32_t unproved;
	pthread_t thread;
	bool runs;

	pthread_mutex_t lock;       /* guards what follows, and the models */
	pthread_cond_t came;
	struct aggregator_input *inputs[PEER_WORKERS_MOST]; /* the latest of each worker; references of their own */
	struct relay_model *model;  /* the latest; a reference of its own */
};

/* ---- peer_port.c ---- */
void peer_port_lose(struct peer_conn *conn);

/* ---- aggregator.c: the port's thread ---- */
void aggregator_begin(struct peer_conn *conn, const struct fabric_msg_give *give);
void aggregator_receive(struct peer_conn *conn);
void aggregator_end(struct peer_conn *conn); /* the connection is lost */
void aggregator_close(struct peer_port *port);

/* ---- relay.c: the port's thread ---- */
void relay_begin(struct peer_conn *conn, const struct fabric_msg_fetch *fetch);
void relay_serve(struct peer_conn *conn);
void relay_end(struct peer_conn *conn); /* the connection is lost */
void relay_on_progress(struct loop_task *task);

#endif
