/*
 * sched_server.h - the scheduler's process: workers register and announce updates, and are told what is decided.
 *
 *     sched_server ─┬─ sched_server_port ── sched_server_conn ...   connections, proved by the keys of the hub's jobs
 *                   └─ sched_server_job ─── sched           the machine of one job (fabric/sched.h)
 *
 * One thread, which runs the loop. Does I/O. It keeps nothing on disk: workers register again with a scheduler that was
 * started anew, whose positions count in an epoch of their own.
 */
#ifndef FABRIC_SERVER_SCHED_SERVER_H
#define FABRIC_SERVER_SCHED_SERVER_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "node/auth/handshake.h"
#include "node/net/address.h"

struct sched_server_config {
	struct address listen;
	uint8_t key[HANDSHAKE_KEY_BYTES]; /* the hub's, from which those of its jobs follow */
	uint64_t batch_ns;
	bool aggregates;   /* workers may send sums of updates, where it pays */
	bool chains;       /* by streaming chains */
	bool has_slack;    /* as of struct sched_config (fabric/sched.h) */
	uint32_t slack;
	uint64_t slack_wait_ns;
	uint64_t hub_rate, worker_rate; /* bytes per second: of the hub's link, of a worker's until it is measured */
	FILE *decisions;   /* a line for each (fabric/sched_log.h); NULL: none */
	void (*log)(void *context, const char *line); /* NULL: silent */
	void *log_context;
};

struct sched_server;

/* ESP_EINVAL, ESP_ELINK: the address cannot be listened at; ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status sched_server_open(const struct sched_server_config *config, struct sched_server **out,
                                              struct error *err);
/* Serves until SIGINT or SIGTERM comes. */
void sched_server_run(struct sched_server *server);
void sched_server_close(struct sched_server *server); /* NULL is fine */

/* The abstract name of a scheduler's status socket. */
#define SCHED_SERVER_STATUS_NAME 64u
const char *sched_server_status_name(uint32_t user, uint16_t port, char name[SCHED_SERVER_STATUS_NAME]);

#endif
