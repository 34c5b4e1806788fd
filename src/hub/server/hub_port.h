/*
 * hub_port.h - the listening sockets of a parameter hub, within an accept limit. The control thread's.
 */
#ifndef HUB_SERVER_HUB_PORT_H
#define HUB_SERVER_HUB_PORT_H

#include "hub/server/hub_state.h"

/*
 * Listens at all addresses of config.listen. ESP_EINVAL, ESP_ELINK. Sockets that are open stay so until
 * hub_port_close().
 */
ESP_CHECKED enum esp_status hub_port_open(struct hub *hub, struct error *err);
void hub_port_close(struct hub *hub);
/* In the loop's hook: takes connections that the limit has held up. Returns when to call again. */
uint64_t hub_port_turn(struct hub *hub, uint64_t now_ns);

#endif
