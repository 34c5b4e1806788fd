/*
 * packet.h - what two probers say to each other: one small message of fixed size, with proof.
 *
 *     magic 4   kind 1   0 3   session 8   from 4   to 4   round 4   sequence 4   before 4   0 4   turnaround 8   tag 16
 *
 * The same 64 bytes go in datagrams (echo.h) and open a stream (burst.h). The tag is a keyed hash (BLAKE2b) of what stands before it,
 * under a key that is made from the job's key and what one host drew for this probing: a stranger's packet, one of another
 * job or of an earlier probing has another tag, and a late one another round or sequence. All numbers are little endian.
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
	PACKET_REQUEST = 1, /* a datagram that is to be sent back                       */
	PACKET_REPLY = 2,   /* that one; also says how long the one before was kept      */
	PACKET_STREAM = 3,  /* first on a connection: I want to send to you in this round */
	PACKET_WELCOME = 4, /* the answer                                               */
};

struct packet {
	uint8_t kind; /* enum packet_kind */
	uint32_t from, to; /* hosts */
	uint32_t round;
	uint32_t sequence;
	uint32_t before;        /* of a reply: the sequence number that turnaround_ns is about */
	uint64_t turnaround_ns; /* from when that request arrived until its reply left; 0: not known */
};

/* One probing of one job. */
struct packet_session {
	uint8_t key[PACKET_KEY_BYTES];
	uint64_t number;
};

/* From the job's key (PACKET_KEY_BYTES) and a nonce that is new for every probing. */
void packet_session_init(struct packet_session *session, const uint8_t *job_key, const uint8_t nonce[PACKET_NONCE_BYTES]);
void packet_session_wipe(struct packet_session *session);

void packet_encode(const struct packet_session *session, const struct packet *packet, uint8_t out[PACKET_BYTES]);

/* False: not of this session, or not a packet at all; *out is then untouched. Hosts are below `hosts`. */
bool packet_decode(const struct packet_session *session, const uint8_t *bytes, size_t length, uint32_t hosts, struct packet *out);

#endif
