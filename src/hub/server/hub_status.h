/*
 * hub_status.h - tells what a parameter hub does: jobs, workers, versions, rates, memory and what limits it.
 *
 * Answers GET requests on local sockets (node/observe/http_server.h): /status is JSON, /text a table for people,
 * /metrics for Prometheus. The control thread's.
 */
#ifndef HUB_SERVER_HUB_STATUS_H
#define HUB_SERVER_HUB_STATUS_H

#include "hub/server/hub_state.h"

/* The abstract name of the socket, without its leading NUL: "espalier/UID/hub/PORT". */
#define HUB_STATUS_NAME 64u
const char *hub_status_name(uint32_t user, uint16_t port, char name[HUB_STATUS_NAME]);

/* ESP_EIO: the socket of config.metrics cannot be made; a taken abstract name is only logged. ESP_ENOMEM. */
ESP_CHECKED enum esp_status hub_status_open(struct hub *hub, struct error *err);
void hub_status_close(struct hub *hub);
/* Once a second: rates are those since the last time. */
void hub_status_count(struct hub *hub, uint64_t now_ns);

#endif
