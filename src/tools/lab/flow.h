/*
 * flow.h - TCP connections between hosts of the lab, both ends in one process: for measurements and background
 * traffic.
 *
 * A socket belongs to the network namespace that it was made in, so one process can hold the ends of all of
 * them.
 */
#ifndef TOOLS_LAB_FLOW_H
#define TOOLS_LAB_FLOW_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "tools/lab/fabric.h"

struct flow {
	int sender, receiver; /* connected, non-blocking; -1: none */
};

/* Connects one host to another on a rail, within limit_ms. ESP_ELINK. */
ESP_CHECKED enum esp_status lab_flow_open(struct flow *flow, const struct fabric *fabric, uint32_t from, uint32_t to,
                                          uint32_t rail, int limit_ms, struct error *err);

/* Writes as much as fits. False: the connection is broken. */
bool lab_flow_fill(const struct flow *flow);

/* Reads and discards all there is. Returns the bytes; -1: the connection is broken. */
ssize_t lab_flow_drain(const struct flow *flow);

void lab_flow_close(struct flow *flow);

/* The address of a host for bind() and connect(). Returns its length. */
socklen_t lab_flow_address(const struct lab *lab, uint32_t host, uint32_t rail, uint16_t port,
                           struct sockaddr_storage *out);

#endif
