/*
 * udp.h - the driver of echo.h: one socket, and the kernel's times of what goes through it.
 */
#ifndef NETWORK_PROBE_UDP_H
#define NETWORK_PROBE_UDP_H

#include "network/probe/echo.h"
#include "network/probe/place.h"

struct udp {
	int fd; /* -1: none */
	uint16_t port;
};

/* Ports as in place_open(). */
ESP_CHECKED enum esp_status udp_open(struct udp *udp, int family, uint16_t first, uint16_t last, struct error *err);
void udp_close(struct udp *udp);

#define UDP_TAKES_MOST 64u /* packets in a turn: whoever sends more than we can take does not keep us from looking at the time */

/* Takes what has come, but no more than that, and asks what is due. Returns when there may be something more to ask. */
uint64_t udp_turn(struct udp *udp, struct echo *echo, const struct place *places, uint64_t now_ns);

/* Turns until then: asks and answers; what goes wrong on the way is a packet that is lost. places: by host. */
void udp_run(struct udp *udp, struct echo *echo, const struct place *places, uint64_t until_ns);

#endif
