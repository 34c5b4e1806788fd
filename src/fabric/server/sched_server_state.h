/*
 * sched_server_state.h - the parts of a scheduler's process. Private to fabric/server; its one thread's.
 */
#ifndef FABRIC_SERVER_SCHED_SERVER_STATE_H
#define FABRIC_SERVER_SCHED_SERVER_STATE_H

#include <signal.h>
#include <stdbool.h>

#include "base/loop.h"
#include "fabric/sched.h"
#include "fabric/server/sched_picture.h"
#include "fabric/server/sched_server.h"
#include "node/control/accept_limit.h"
#include "wire/fabric_msg.h"

#define SCHED_SERVER_PORTS 2u  /* "any" of both families where the kernel keeps them apart */
#define SCHED_SERVER_JOBS 256u /* at a time */

struct http_server;
struct sched_server_conn;

/* A job while one of its workers is connected, and a while longer. */
struct sched_server_job {
	struct loop_timer timer; /* first member: the scheduler's next time */
	struct sched_server *server;
	struct sched_server_job *next;
	uint64_t number;
	uint64_t session;  /* of the job at its hub */
	uint64_t epoch;
	struct sched_picture picture; /* of the latest batch that had a decision */
	char name[FABRIC_JOB_NAME];
	uint32_t workers, bound, connected;
	uint64_t empty_ns;                                    /* since when no worker is connected; 0: one is */
	struct sched *sched;                                  /* owned */
	struct sched_server_conn *conns[LEDGER_WORKERS_MOST]; /* by worker */
};

struct sched_server_port {
	struct loop_fd watched; /* first member */
	struct sched_server *server;
};

struct sched_server {
	struct sched_server_config config;
	struct loop loop;
	uint64_t began_ns, epoch; /* of the next job */
	struct sched_server_port ports[SCHED_SERVER_PORTS];
	uint32_t port_count;
	bool ports_paused;
	uint64_t full_until_ns; /* no descriptor was free: nothing is accepted until then */
	struct accept_limit limit;
	struct sched_server_conn *conns;
	struct sched_server_job *jobs;
	uint32_t job_count, unproved;
	uint64_t refused;
	struct loop_timer looks;
	struct http_server *status;
	struct loop_fd signals;
	sigset_t former_mask;
};

void sched_server_log(struct sched_server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- sched_server_port.c ---- */
ESP_CHECKED enum esp_status sched_server_port_open(struct sched_server *server, struct error *err);
void sched_server_port_close(struct sched_server *server);
/* After each turn. Returns when to call again at the latest. */
uint64_t sched_server_port_turn(struct sched_server *server, uint64_t now_ns);

/* ---- sched_server_job.c ---- */
struct sched_server_job *sched_server_job_find(const struct sched_server *server, uint64_t number);
/* The worker registers: the job is found or made. ESP_EMISMATCH, ESP_ELIMIT, ESP_ENOMEM, ESP_EINVAL. */
ESP_CHECKED enum esp_status sched_server_job_join(struct sched_server *server, struct sched_server_conn *conn,
                                                  const struct fabric_msg_register *reg, struct error *err);
void sched_server_job_leave(struct sched_server_conn *conn);
ESP_CHECKED enum esp_status sched_server_job_ready(struct sched_server_conn *conn, const struct fabric_msg_ready *ready,
                                                   struct error *err);
ESP_CHECKED enum esp_status sched_server_job_done(struct sched_server_conn *conn, const struct fabric_msg_done *done,
                                                  struct error *err);
ESP_CHECKED enum esp_status sched_server_job_want(struct sched_server_conn *conn, const struct fabric_msg_want *want,
                                                  struct error *err);
ESP_CHECKED enum esp_status sched_server_job_got(struct sched_server_conn *conn, const struct fabric_msg_got *got,
                                                 struct error *err);
/* Forgets jobs that have had no worker for long; workers that wait for a decision hear that the scheduler lives. */
void sched_server_job_look_after_all(struct sched_server *server, uint64_t now_ns);
void sched_server_job_close_all(struct sched_server *server);

/* ---- sched_server_status.c ---- */
ESP_CHECKED enum esp_status sched_server_status_open(struct sched_server *server, struct error *err);
void sched_server_status_close(struct sched_server *server);

#endif
