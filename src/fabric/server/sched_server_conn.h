/*
 * sched_server_conn.h - a connection to a scheduler: it proves a job's key, registers a worker, and carries its
 * messages.
 *
 *     PROVING ──> PROVED ──> REGISTERED ──> DEAD       (each may become DEAD)
 *
 * A connection that has ended stays in memory as DEAD until the turn of the loop is over. Messages are small and few:
 * what the kernel does not take at once ends the connection.
 */
#ifndef FABRIC_SERVER_SCHED_SERVER_CONN_H
#define FABRIC_SERVER_SCHED_SERVER_CONN_H

#include "fabric/server/sched_server_state.h"
#include "node/auth/handshake.h"

enum sched_server_conn_state {
	SCHED_SERVER_CONN_PROVING,
	SCHED_SERVER_CONN_PROVED,
	SCHED_SERVER_CONN_REGISTERED,
	SCHED_SERVER_CONN_DEAD,
};

struct sched_server_conn {
	struct loop_fd watched; /* first member */
	struct sched_server *server;
	struct sched_server_conn *next;
	uint8_t state; /* enum sched_server_conn_state */
	uint64_t since_ns;
	struct handshake *hs; /* owned; while PROVING */
	uint64_t job_number;  /* from PROVED on */
	uint32_t worker;
	struct sched_server_job *job; /* REGISTERED */
	uint8_t host[FABRIC_HOST];    /* REGISTERED: from where it is connected */
	uint16_t port;                /* REGISTERED: where other workers reach it; 0: nowhere */
	bool takes_sums;              /* REGISTERED: as an aggregator, too */
	uint8_t in[FABRIC_MSG_BYTES];
	size_t in_bytes;
};

/* Takes a descriptor that was accepted. */
void sched_server_conn_accept(struct sched_server *server, int fd);
void sched_server_conn_send(struct sched_server_conn *conn, const struct fabric_msg *msg);
/* Tells why, and ends it. */
void sched_server_conn_refuse(struct sched_server_conn *conn, const struct error *err);
void sched_server_conn_look_after_all(struct sched_server *server, uint64_t now_ns);
void sched_server_conn_free_dead(struct sched_server *server);
void sched_server_conn_close_all(struct sched_server *server);

#endif
