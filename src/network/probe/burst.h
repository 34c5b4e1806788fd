/*
 * burst.h - bandwidth: in a round, a host sends to one other host as fast as it can, and counts the data that
 * it receives.
 *
 *     slot    ├─ connecting ─┼─ warming up ─┼──── counting ────┤
 *            now          start_ns       count_ns           end_ns
 *
 * All hosts are in the same slot by their own clocks, synchronised by one meeting; hosts do not wait for each
 * other, so a missing host costs its own measurement only. Several connections share a path: a single one would
 * need time to recover its rate after every loss, and clouds limit single ones. The receiver counts, by its own
 * clock.
 *
 * A connection begins with a packet that proves it (packet.h) and is answered by another. A connection for the
 * next round waits; one for an earlier round is closed, and an unproved one is closed when the round is over or
 * slots are scarce.
 */
#ifndef NETWORK_PROBE_BURST_H
#define NETWORK_PROBE_BURST_H

#include "network/probe/packet.h"
#include "network/probe/place.h"

#define BURST_GUESTS 64u   /* incoming connections at a time */
#define BURST_EACH_MOST 16u /* outgoing connections in a round */
#define BURST_NONE UINT32_MAX

struct burst_guest {
	int fd;        /* -1: free; -2: closed, and counts */
	uint32_t have; /* bytes of its packet */
	uint32_t said; /* bytes sent of the answer */
	uint8_t packet[PACKET_BYTES];
	bool proved, welcome; /* welcome: the answer was sent, data follows */
	uint32_t from, round;
	uint64_t order;       /* number of its arrival */
	uint64_t bytes;       /* in this round, in all */
	uint64_t counted;     /* of those, between first_ns and last_ns */
	uint64_t first_ns, last_ns;
};

struct burst_port {
	int fd; /* -1: none */
	uint16_t port;
	uint64_t next_order;
	struct burst_guest guests[BURST_GUESTS];
	uint8_t *data; /* data to send: incompressible */
};

struct burst_round {
	const struct packet_session *session;
	const struct place *places; /* by host */
	uint32_t hosts, self;
	uint32_t round;   /* number of the round in the session, rising */
	uint32_t target;  /* BURST_NONE: only receives */
	uint32_t streams; /* connections to the target */
	uint64_t start_ns, count_ns, end_ns;
};

struct burst_from {
	uint32_t host;
	uint64_t bytes;
	double rate; /* bytes per second */
};

struct burst_result {
	bool reached;    /* the target has answered */
	uint64_t sent;   /* bytes to the target */
	uint32_t count;
	struct burst_from from[BURST_GUESTS]; /* without repetitions of a host */
};

/* Ports as in probe_place_open(). */
ESP_CHECKED enum esp_status probe_burst_open(struct burst_port *port, int family, uint16_t first, uint16_t last,
                                             struct error *err);
void probe_burst_close(struct burst_port *port);

/* Returns at end_ns, whatever happens. */
void probe_burst_run(struct burst_port *port, const struct burst_round *round, struct burst_result *out);

#endif
