/*
 * verdict_msg.h - what the members of a failed group tell each other to agree on who goes on.
 *
 * Members are named by their place in the group, of which all know the size. A message is a head and, for
 * some types, bitmaps with one bit per member, the lowest bit of the first byte first. All numbers are little endian.
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
	VERDICT_CALL = 1,    /* I wait for you; are you there?                                            */
	VERDICT_HERE = 2,    /* yes; channel is the place of the member that I wait for myself            */
	VERDICT_JOIN = 3,    /* to who leads the round: what I know, and what I have accepted. All bitmaps */
	VERDICT_PROPOSE = 4, /* from who leads it: let us do this. With members                           */
	VERDICT_ACCEPT = 5,  /* I shall                                                                   */
	VERDICT_REFUSE = 6,  /* ballot: I am further than that; channel: or it is taken here, this one is not */
	VERDICT_DECIDED = 7, /* that is what is done. With members, those of them who were not asked, and who has left */
	VERDICT_LEFT = 8,    /* I have freed the group, and do not care who goes on                       */
};

#define VERDICT_FLAGS 3u
enum verdict_flag {
	VERDICT_NO_QUORUM = 1, /* there are too few: nobody goes on                    */
	VERDICT_REPEATED = 2,  /* somebody has accepted it before: it cannot be other   */
};

/* Who goes on, where, and which calls have ended well. */
struct verdict_terms {
	uint64_t ballot;     /* round << 32 and attempt; 0: nothing                                */
	uint64_t everywhere; /* up to this number, calls have ended well on all of them            */
	uint64_t somewhere;  /* beyond this number, on none of them                                */
	uint32_t channel;    /* of the new group                                                   */
	uint8_t flags;       /* enum verdict_flag                                                  */
};

struct verdict_msg {
	uint8_t type;        /* enum verdict_type        */
	uint32_t size;       /* of the group             */
	struct verdict_terms terms;
	struct verdict_terms accepted; /* JOIN          */
	/* Bitmaps, borrowed; NULL: the type has none. */
	const uint8_t *gone;    /* JOIN: those who are, for all that the sender knows         */
	const uint8_t *left;    /* JOIN, DECIDED: those who have freed the group; they are in the job still */
	const uint8_t *accused; /* JOIN: those who the sender itself hears nothing of         */
	const uint8_t *behind;  /* DECIDED: members who were not asked, and so do not go on   */
	const uint8_t *members; /* those who go on; in a JOIN, of what was accepted           */
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

/* The longest message of a group of this size. */
size_t verdict_msg_most(uint32_t size);
/* out has room for that. Returns how long it is. */
size_t verdict_msg_encode(const struct verdict_msg *msg, uint8_t *out);
/* False if the bytes are no such message of a group of this size; *out is then untouched. The bitmaps point into `in`. */
bool verdict_msg_decode(const uint8_t *in, size_t n, uint32_t size, struct verdict_msg *out);
/*
 * For who has freed the group and no longer knows its size, of which the beginning of a message tells as much as this. Is it one
 * that somebody waits to have answered?
 */
bool verdict_msg_asks(const uint8_t *in, size_t n, uint32_t *out_size);

#endif
