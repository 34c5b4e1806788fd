/*
 * burst.h - bandwidth: in a round, send to one host as fast as it goes, and count what comes from whoever sends to us.
 *
 *     slot    ├─ connecting ─┼─ warming up ─┼──── counting ────┤
 *            now          start_ns       count_ns           end_ns
 *
 * All hosts are in the same slot by their own clocks, set by one meeting; nobody waits for anybody, so whoever is missing costs
 * its own measurement alone. Several connections share a way: one of them would have to find its rate again after every loss, and clouds
 * bound single ones. The receiver counts, by its own clock.
 *
 * A connection begins with a packet that proves it (packet.h) and is answered by another. What is for the next round waits; what
 * is for one before is closed, and so is a stranger when the round is over or places get scarce.
 */
#ifndef NETWORK_PROBE_BURST_H
#define NETWORK_PROBE_BURST_H

#include "network/probe/packet.h"
#include "network/probe/place.h"

#define BURST_GUESTS 64u   /* connections to us at a time */
#define BURST_EACH_MOST 16u /* connections of ours in a round */
#define BURST_NOBODY UINT32_MAX

struct burst_guest {
	int fd;        /* -1: free; -2: has gone, and counts */
	uint32_t have; /* bytes of its packet */
	uint32_t said; /* bytes of our answer */
	uint8_t packet[PACKET_BYTES];
	bool proved, welcome; /* welcome: our answer has left, data follows */
	uint32_t from, round;
	uint64_t order;       /* of its coming */
	uint64_t bytes;       /* of this round, in all */
	uint64_t counted;     /* of those, between first_ns and last_ns */
	uint64_t first_ns, last_ns;
};

struct burst_port {
	int fd; /* -1: none */
	uint16_t port;
	uint64_t next_order;
	struct burst_guest guests[BURST_GUESTS];
	uint8_t *data; /* what is sent: nothing that a network could compress */
};

struct burst_round {
	const struct packet_session *session;
	const struct place *places; /* by host */
	uint32_t hosts, self;
	uint32_t round;   /* of all that are played in a session, in rising order */
	uint32_t target;  /* BURST_NOBODY: only receives */
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
	uint64_t sent;   /* bytes to it */
	uint32_t count;
	struct burst_from from[BURST_GUESTS]; /* by host, none twice */
};

/* Ports as in place_open(). */
ESP_CHECKED enum esp_status burst_open(struct burst_port *port, int family, uint16_t first, uint16_t last, struct error *err);
void burst_close(struct burst_port *port);

/* Returns at end_ns, whatever happens. */
void burst_run(struct burst_port *port, const struct burst_round *round, struct burst_result *out);

#endif
