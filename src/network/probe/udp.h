/*
 * udp.h - the I/O of echo.h: one socket with the kernel's timestamps. One thread per struct udp.
 */
#ifndef NETWORK_PROBE_UDP_H
#define NETWORK_PROBE_UDP_H

#include "network/probe/echo.h"
#include "network/probe/place.h"

struct udp {
	int fd; /* -1: none */
	uint16_t port;
};

/* Ports as in probe_place_open(). */
ESP_CHECKED enum esp_status probe_udp_open(struct udp *udp, int family, uint16_t first, uint16_t last,
                                           struct error *err);
void probe_udp_close(struct udp *udp);

#define UDP_TAKES_MOST 64u /* packets per turn: a flood does not keep this host from looking at the time */

/* Reads at most UDP_TAKES_MOST packets, and sends due requests. Returns when to call again. */
uint64_t probe_udp_turn(struct udp *udp, struct echo *echo, const struct place *places, uint64_t now_ns);

/* Takes turns until then; errors count as lost packets. places: by host. */
void probe_udp_run(struct udp *udp, struct echo *echo, const struct place *places, uint64_t until_ns);

#endif
