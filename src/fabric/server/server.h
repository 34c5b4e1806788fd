/*
 * server.h - the scheduler's process: workers register and announce updates, and are told what is decided.
 *
 *     server ─┬─ server_port ──── server_conn ...   connections, proved by the keys of the hub's jobs
 *             └─ server_job ───── sched             the machine of one job (fabric/sched.h)
 *
 * One thread, which runs the loop. Does I/O. It keeps nothing on disk: workers register again with a scheduler that was
 * started anew, whose positions count in an epoch of their own.
 */
#ifndef FABRIC_SERVER_SERVER_H
#define FABRIC_SERVER_SERVER_H

#include <stdint.h>

#include "base/error.h"
#include "node/auth/handshake.h"
#include "node/net/address.h"

struct server_config {
	struct address listen;
	uint8_t key[HANDSHAKE_KEY_BYTES]; /* the hub's, from which those of its jobs follow */
	uint64_t batch_ns;
	uint64_t hub_rate, worker_rate;   /* bytes per second: of the hub's link, of a worker's until it is measured */
	void (*log)(void *context, const char *line); /* NULL: silent */
	void *log_context;
};

struct server;

/* ESP_EINVAL, ESP_ELINK: the address cannot be listened at; ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status server_open(const struct server_config *config, struct server **out, struct error *err);
/* Serves until SIGINT or SIGTERM comes. */
void server_run(struct server *server);
void server_close(struct server *server); /* NULL is fine */

/* The abstract name of a scheduler's status socket. */
#define SERVER_STATUS_NAME 64u
const char *server_status_name(uint32_t user, uint16_t port, char name[SERVER_STATUS_NAME]);

#endif
