/*
 * verdict_msg.h - messages of the agreement on the surviving members of a failed communicator.
 *
 * Members are named by their place in the communicator; all know its size. A message is a head and, for some
 * types, bitmaps with one bit per member, the lowest bit of the first byte first. All numbers are little
 * endian. Pure.
 *
 *     0     1      2      3  4     8        12       16      24          32         40 ... 64   64
 *     type  flags  flags  0  size  channel  channel  ballot  everywhere  somewhere  the same   bitmaps
 *                  of what was accepted     accepted                                of what was accepted
 */
#ifndef WIRE_VERDICT_MSG_H
#define WIRE_VERDICT_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERDICT_HEAD_BYTES 64u

enum verdict_type {
	VERDICT_CALL = 1,    /* the sender waits for the receiver; to be answered */
	VERDICT_HERE = 2,    /* answer; channel: place of the member that the sender itself waits for */
	/* to the coordinator of the round: the sender's knowledge, and the terms that it has accepted. All bitmaps */
	VERDICT_JOIN = 3,
	VERDICT_PROPOSE = 4, /* from the coordinator: proposed terms. With members */
	VERDICT_ACCEPT = 5,  /* the sender accepts the proposal */
	/* ballot: the sender has seen this higher one; channel: or this one is taken, propose another */
	VERDICT_REFUSE = 6,
	/* the terms are decided. With members, members that were not asked, and members that have left */
	VERDICT_DECIDED = 7,
	VERDICT_LEFT = 8,    /* the sender has freed the communicator and does not take part */
};

#define VERDICT_FLAGS 3u
enum verdict_flag {
	VERDICT_NO_QUORUM = 1, /* too few members are left: none continues */
	VERDICT_REPEATED = 2,  /* a member has accepted these terms before: they cannot be changed */
};

/* The surviving members' new channel, and which calls have completed. */
struct verdict_terms {
	uint64_t ballot;     /* round << 32 and attempt; 0: none */
	uint64_t everywhere; /* calls up to this number have completed on all members */
	uint64_t somewhere;  /* calls beyond this number have completed on no member */
	uint32_t channel;    /* of the new communicator */
	uint8_t flags;       /* enum verdict_flag                                                  */
};

struct verdict_msg {
	uint8_t type;        /* enum verdict_type        */
	uint32_t size;       /* of the communicator */
	struct verdict_terms terms;
	struct verdict_terms accepted; /* JOIN          */
	/* Bitmaps, borrowed; NULL: the type has none. */
	const uint8_t *gone;    /* JOIN: members that are gone, as far as the sender knows */
	/* JOIN, DECIDED: members that have freed the communicator; their ranks may still be in the job */
	const uint8_t *left;
	const uint8_t *accused; /* JOIN: members that the sender hears nothing of */
	const uint8_t *behind;  /* DECIDED: members that were not asked, and do not continue */
	const uint8_t *members; /* surviving members; in a JOIN, those of the accepted terms */
};

static inline size_t verdict_map_bytes(uint32_t size)
{
	return ((size_t)size + 7) / 8;
}
static inline bool verdict_bit(const uint8_t *map, uint32_t place)
{
	return (map[place / 8] >> place % 8 & 1) != 0;
}
static inline void verdict_set_bit(uint8_t *map, uint32_t place)
{
	map[place / 8] = (uint8_t)(map[place / 8] | 1u << place % 8);
}

/* The length of the longest message for a communicator of this size. */
size_t verdict_msg_most(uint32_t size);
/* Returns the length; out has room for verdict_msg_most() bytes. */
size_t verdict_msg_encode(const struct verdict_msg *msg, uint8_t *out);
/* False if the bytes are no such message for this size; *out is then untouched. The bitmaps point into `in`. */
bool verdict_msg_decode(const uint8_t *in, size_t n, uint32_t size, struct verdict_msg *out);
/*
 * For a member that has freed the communicator and no longer knows its size, which it gets from the message.
 * True if the sender waits for an answer.
 */
bool verdict_msg_asks(const uint8_t *in, size_t n, uint32_t *out_size);

#endif
