/*
 * place.h - the address and ports of each host's prober, and opening this host's two ports.
 */
#ifndef NETWORK_PROBE_PLACE_H
#define NETWORK_PROBE_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

struct place {
	struct sockaddr_storage address; /* without a port; of a family that this host's ports can send to */
	socklen_t length;                /* 0: unknown */
	uint16_t udp_port, tcp_port;     /* 0: unknown */
};

/* Bytes in network order: 4 or 16 of them. scope: interface of a link-local address. */
void probe_place_set(struct place *place, const uint8_t *bytes, size_t count, uint32_t scope);

/* If one of them is IPv6, all become IPv6, with IPv4 mapped. Returns the common family. */
int probe_places_settle(struct place *places, uint32_t count);

enum place_kind {
	PLACE_DATAGRAMS,
	PLACE_STREAMS,
};

/* The address with the port of that kind. False: unknown. */
bool probe_place_socket_name(const struct place *place, enum place_kind kind, struct sockaddr_storage *out,
                             socklen_t *out_length);

/*
 * Opens a non-blocking socket on all addresses of this host: at the first free port of first .. last, or at any
 * port if none of them is free or they are 0. ESP_ELINK.
 */
ESP_CHECKED enum esp_status probe_place_open(int family, enum place_kind kind, uint16_t first, uint16_t last,
                                             int *out_fd, uint16_t *out_port, struct error *err);

#endif
