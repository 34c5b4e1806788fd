/*
 * server_state.h - the parts of a scheduler's process. Private to fabric/server; its one thread's.
 */
#ifndef FABRIC_SERVER_SERVER_STATE_H
#define FABRIC_SERVER_SERVER_STATE_H

#include <signal.h>
#include <stdbool.h>

#include "base/loop.h"
#include "fabric/sched.h"
#include "fabric/server/server.h"
#include "node/control/accept_limit.h"
#include "wire/fabric_msg.h"

#define SERVER_PORTS 2u  /* "any" of both families where the kernel keeps them apart */
#define SERVER_JOBS 256u /* at a time */

struct http_server;
struct server_conn;

/* A job while one of its workers is connected, and a while longer. */
struct server_job {
	struct loop_timer timer; /* first member: the scheduler's next time */
	struct server *server;
	struct server_job *next;
	uint64_t number;
	uint64_t epoch;
	char name[FABRIC_JOB_NAME];
	uint32_t workers, bound, connected;
	uint64_t empty_ns;       /* since when no worker is connected; 0: one is */
	struct sched *sched;     /* owned */
	struct server_conn *conns[LEDGER_WORKERS_MOST]; /* by worker */
};

struct server_port {
	struct loop_fd watched; /* first member */
	struct server *server;
};

struct server {
	struct server_config config;
	struct loop loop;
	uint64_t began_ns, epoch; /* of the next job */
	struct server_port ports[SERVER_PORTS];
	uint32_t port_count;
	bool ports_paused;
	struct accept_limit limit;
	struct server_conn *conns;
	struct server_job *jobs;
	uint32_t job_count, unproved;
	uint64_t refused;
	struct loop_timer seconds;
	struct http_server *status;
	struct loop_fd signals;
	sigset_t former_mask;
};

void server_log(struct server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- server_port.c ---- */
ESP_CHECKED enum esp_status server_port_open(struct server *server, struct error *err);
void server_port_close(struct server *server);
/* After each turn. Returns when to call again at the latest. */
uint64_t server_port_turn(struct server *server, uint64_t now_ns);

/* ---- server_job.c ---- */
struct server_job *server_job_find(const struct server *server, uint64_t number);
/* The worker registers: the job is found or made. ESP_EMISMATCH, ESP_ELIMIT, ESP_ENOMEM, ESP_EINVAL. */
ESP_CHECKED enum esp_status server_job_join(struct server *server, struct server_conn *conn,
                                            const struct fabric_msg_register *reg, struct error *err);
void server_job_leave(struct server_conn *conn);
ESP_CHECKED enum esp_status server_job_ready(struct server_conn *conn, const struct fabric_msg_ready *ready,
                                             struct error *err);
ESP_CHECKED enum esp_status server_job_done(struct server_conn *conn, const struct fabric_msg_done *done,
                                            struct error *err);
/* Forgets jobs that have had no worker for long. */
void server_job_look_after_all(struct server *server, uint64_t now_ns);
void server_job_close_all(struct server *server);

/* ---- server_status.c ---- */
ESP_CHECKED enum esp_status server_status_open(struct server *server, struct error *err);
void server_status_close(struct server *server);

#endif
