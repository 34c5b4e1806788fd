/*
 * packet.h - the message between two probers: of fixed size, with a proof.
 *
 *     magic 4  kind 1  0 3  session 8  from 4  to 4  round 4  sequence 4  before 4  0 4  turnaround 8  tag 16
 *
 * The same 64 bytes are sent in datagrams (echo.h) and begin a stream (burst.h). The tag is a keyed hash
 * (BLAKE2b) of the bytes before it, under a key derived from the job's key and a nonce of this session: packets
 * of processes without the key, of other jobs or earlier sessions have other tags, and a late one has another
 * round or sequence. All numbers are little endian.
 *
 * Pure.
 */
#ifndef NETWORK_PROBE_PACKET_H
#define NETWORK_PROBE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_BYTES 64u
#define PACKET_KEY_BYTES 32u
#define PACKET_NONCE_BYTES 16u

enum packet_kind {
	PACKET_REQUEST = 1, /* a datagram to be sent back */
	PACKET_REPLY = 2,   /* its answer; also carries how long the previous one was kept */
	PACKET_STREAM = 3,  /* first on a connection: the sender wants to send data in this round */
	PACKET_WELCOME = 4, /* the answer                                               */
};

struct packet {
	uint8_t kind; /* enum packet_kind */
	uint32_t from, to; /* numbers of hosts */
	uint32_t round;
	uint32_t sequence;
	uint32_t before;        /* of a reply: the sequence number that turnaround_ns is about */
	uint64_t turnaround_ns; /* from the arrival of that request until its reply left; 0: unknown */
};

/* One probing session of one job. */
struct packet_session {
	uint8_t key[PACKET_KEY_BYTES];
	uint64_t number;
};

/* From the job's key (PACKET_KEY_BYTES) and a nonce that is new for every session. */
void probe_packet_session_init(struct packet_session *session, const uint8_t *job_key,
                               const uint8_t nonce[PACKET_NONCE_BYTES]);
void probe_packet_session_wipe(struct packet_session *session);

void probe_packet_encode(const struct packet_session *session, const struct packet *packet, uint8_t out[PACKET_BYTES]);

/* False: not of this session, or no packet; *out is then untouched. Hosts are below `hosts`. */
bool probe_packet_decode(const struct packet_session *session, const uint8_t *bytes, size_t length, uint32_t hosts,
                         struct packet *out);

#endif
