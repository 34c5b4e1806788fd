/*
 * hub.h - a parameter hub: a process that sums and optimizes the models of many jobs while their gradients arrive.
 *
 * One thread calls these and is the control thread: it listens, proves connections, and serves operators and the
 * control connections of workers (wire/hub_msg.h). Each lane has a thread for data (hub_lane.h). Does I/O.
 *
 *     hub ─┬─ port ──── hub_conn ...   connections that are not proved yet, of operators, of workers
 *          ├─ hub_job ── hub_session   a job, and the run of its workers that is under way
 *          └─ hub_lane ── hub_part     a thread, and the chunks of each session on it
 */
#ifndef HUB_SERVER_HUB_H
#define HUB_SERVER_HUB_H

#include "hub/server/hub_config.h"

struct hub;

/* Listens, and starts the lanes. ESP_EINVAL, ESP_ELINK: the address cannot be listened at; ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status hub_open(const struct hub_config *config, struct hub **out, struct error *err);
/* Serves until SIGINT or SIGTERM comes, or hub_stop(). */
void hub_run(struct hub *hub);
void hub_stop(struct hub *hub); /* any thread */
/* Ends all sessions: their workers are told so. NULL is fine. */
void hub_close(struct hub *hub);

#endif
