/*
 * trains.h - a UDP socket for trains of small packets: batches of system calls, segmentation and coalescing by the
 * kernel.
 *
 * Packets to one peer that are sent in a row and are equally long leave as one train (UDP_SEGMENT), trains come in
 * whole (UDP_GRO), and several of either pass in one system call. A kernel without the two gets single packets. All
 * packets carry ECT(0), so that a congested queue on the way can mark them.
 *
 * Does I/O and blocks no longer than a full socket buffer takes to drain. One thread at a time.
 */
#ifndef SWITCH_TRAINS_TRAINS_H
#define SWITCH_TRAINS_TRAINS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

union trains_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage storage;
};

socklen_t trains_address_length(const union trains_address *address);
/* The same host and, unless host_only, the same port. */
bool trains_address_equal(const union trains_address *a, const union trains_address *b, bool host_only);

/* A destination; embedded by its user. Zeroed but for the address: nothing waits for it. */
struct trains_peer {
	union trains_address address;
	uint32_t first, last;  /* packets that wait, by place + 1; 0: none */
	struct trains_peer *next; /* that has packets, too                    */
};

struct trains_counters {
	uint64_t received, received_bytes; /* packets */
	uint64_t sent, sent_bytes;
	uint64_t unsent;   /* packets that the kernel refused */
	uint64_t receives, sends; /* system calls */
};

struct trains;

/* Binds to the address; a port of 0 is chosen by the kernel. ESP_ELINK: it cannot; ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status trains_open(const union trains_address *address, struct trains **out, struct error *err);
void trains_close(struct trains *udp); /* NULL: nothing */
int trains_fd(const struct trains *udp);
void trains_bound(const struct trains *udp, union trains_address *out);
const struct trains_counters *trains_counters(const struct trains *udp);

/* This host's address towards another one, without a port, and the largest packet on that way. ESP_ELINK: no way. */
ESP_CHECKED enum esp_status trains_local_address(const union trains_address *to, union trains_address *out,
                                                 uint32_t *out_mtu, struct error *err);

/* ---- receiving ---- */

struct trains_datagram {
	uint8_t *bytes; /* any alignment; the receiver of the call may change them */
	uint32_t length;
	const union trains_address *from;
	bool is_marked; /* a queue on the way was congested */
};

typedef void trains_datagram_fn(void *context, const struct trains_datagram *datagram);

/* Tells of all packets of one batch; false: none was there. The function may send. */
bool trains_receive(struct trains *udp, trains_datagram_fn *tell, void *context);
/* Is more than a quarter of the receive buffer full? */
bool trains_is_crowded(const struct trains *udp);

/* ---- sending ---- */

#define TRAINS_PACKET_MOST 9216u

/* A packet of two parts, copied, for the calls of trains_to() that follow. */
void trains_put(struct trains *udp, const void *head, uint32_t head_bytes, const void *body, uint32_t body_bytes);
/* The packet that was put last goes to this peer, too, which is borrowed until trains_flush(). */
void trains_to(struct trains *udp, struct trains_peer *peer);
void trains_flush(struct trains *udp);

#endif
