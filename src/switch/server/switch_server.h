/*
 * switch_server.h - a switch in user space: a process that adds packets of members and passes their sums on.
 *
 *     switch_server ─┬─ udp             the socket (switch/trains)
 *                    ├─ impair          faults for tests
 *                    ├─ switch_table    flows, members, hosts, slots
 *                    ├─ switch_path     a packet's way: step (switch/step), forwarding
 *                    └─ switch_status   answers to espalier switch status and to Prometheus
 *
 * Members send to the switch's own address; it needs no privilege. One level: members of a flow are all behind this
 * switch. Everything is soft state: a switch that starts anew knows its members within one hello. One thread.
 */
#ifndef SWITCH_SERVER_SWITCH_SERVER_H
#define SWITCH_SERVER_SWITCH_SERVER_H

#include <stdint.h>

#include "base/error.h"
#include "node/net/address.h"
#include "switch/server/impair.h"

struct switch_config {
	struct address listen;
	uint32_t slots;
	uint16_t words_max;  /* room of a slot, in words */
	uint32_t quota;      /* slots that members at one address may hold at once */
	uint32_t flow_quota; /* flows that members at one address may open */
	uint64_t age_ns;     /* a slot that was not touched for so long may be taken by another number */
	uint64_t rate_bps;   /* of the switch's link, told to members; 0: not known */
	struct impair_config impair;
	void (*log)(void *context, const char *line); /* NULL: silent */
	void *log_context;
	const char *version;
};

struct switch_server;

/* ESP_EINVAL, ESP_ELINK: the address cannot be had; ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status switch_server_open(const struct switch_config *config, struct switch_server **out,
                                               struct error *err);
/* Serves until SIGINT or SIGTERM comes. */
void switch_server_run(struct switch_server *server);
void switch_server_close(struct switch_server *server); /* NULL is fine */

/* The abstract name of a switch's status socket. */
#define SWITCH_STATUS_NAME 64u
const char *switch_status_name(uint32_t user, uint16_t port, char name[SWITCH_STATUS_NAME]);

#endif
