/*
 * atp_packet.h - the datagrams of in-network aggregation: 48 bytes behind UDP, then 32-bit words.
 *
 *      0 version 1   1 type 1    2 flags 1   3 hop 1
 *      4 sequence 4              8 flow 8                 16 bitmap 8
 *     24 call 4     28 owner 2  30 group 2   32 fan-in of hop 0 and of hop 1, 1 each
 *     34 scale 1    35 kind 1   36 words 2   38 next 2    40 tag 8     48 words ...
 *
 * All numbers are little endian. A *number* of a flow (its sequence number) stands for one element: `words` words that
 * every member of the flow contributes and one member, the *owner*, gives back as a sum. A gradient carries
 * contributions: at hop 0 those of children of one group (bitmap: members of the group), at hop 1 those of whole groups
 * (bitmap: groups). docs/protocol/atp.md has the protocol.
 *
 * Pure, without calls and without loops: a BPF program may include this header. Hellos have bodies: atp_packet.c.
 */
#ifndef WIRE_ATP_PACKET_H
#define WIRE_ATP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/bytes.h"

#define ATP_VERSION 1u
#define ATP_HEADER_BYTES 48u
#define ATP_WORDS_MAX 2048u  /* fits a datagram of 9,000 bytes */
#define ATP_CHILDREN_MAX 64u /* of a hop: bits of a bitmap */
#define ATP_HOPS 2u
#define ATP_NO_NEXT 65535u /* the owner is behind this switch */
#define ATP_MEMBERS_MAX (ATP_CHILDREN_MAX * ATP_CHILDREN_MAX)

enum atp_type {
	ATP_GRADIENT = 1, /* member or switch to switch or owner: contributions */
	ATP_RESULT = 2,   /* owner to members, through switches: the sum; acknowledges the number */
	ATP_HELLO = 3,    /* member to switch: registers it under the flow; `owner` is the member itself */
	ATP_WELCOME = 4,  /* the answer to a hello */
	ATP_BYE = 5,      /* member to owner: with ATP_DONE, all results below `sequence` have come */
	ATP_ASK = 6,      /* owner to member: others wait for the number, and the member's contribution is missing */
	ATP_PROBE = 7, /* member to member, straight: do packets get there? With ATP_DONE: they do */
	ATP_TYPE_LAST = 7,
};

enum atp_flag {
	/* sent before: takes the slot's sum along and frees it. Of a result: a member had to send again */
	ATP_RESEND = 1,
	ATP_BYPASS = 2,    /* not for switches: goes straight to its destination */
	ATP_COLLISION = 4, /* found its slot taken by another id */
	ATP_MARK = 8,      /* it, or a packet whose contribution it holds, passed a congested queue */
	ATP_DONE = 16,     /* of a bye: the sender has all results below `sequence`; of a probe: the answer */
	ATP_FLAGS = 31,
};

/* The meaning of words; a switch adds all of them alike, and no sum of them leaves the range of a word. */
enum atp_kind {
	ATP_FIXED_32 = 1, /* signed: one quantized value (math/fixed.h) */
	ATP_FIXED_16 = 2, /* unsigned: two of them, with biases */
	ATP_SIGNED = 3,   /* an i32 of the caller */
	ATP_UNSIGNED = 4, /* a u32 of the caller */
	ATP_KIND_LAST = 4,
};

struct atp_packet {
	uint8_t type;  /* enum atp_type */
	uint8_t flags; /* enum atp_flag */
	uint8_t hop;   /* of a gradient: 0, or 1 */
	uint8_t scale; /* digest of the exponents of the words' blocks: equal in all contributions to a number */
	uint8_t kind;  /* enum atp_kind; 0 without sums */
	uint8_t fan_in[ATP_HOPS]; /* children of the group (0 at hop 1), and groups (0: one level only) */
	uint16_t owner; /* member */
	uint16_t group; /* of the contributors, at hop 0 */
	uint16_t words;
	uint16_t next; /* the owner's switch, as the sender's switch numbers switches; ATP_NO_NEXT */
	uint32_t sequence;
	uint32_t call; /* digest of the call: equal in all contributions to a number */
	uint64_t flow;
	uint64_t bitmap; /* of a gradient: children of this hop; else 0 */
	uint64_t tag;    /* additive: the tag of a sum is the sum of tags */
};

/* All children of a hop. */
static inline uint64_t atp_children(uint8_t fan_in)
{
	return fan_in >= ATP_CHILDREN_MAX ? UINT64_MAX : (UINT64_C(1) << fan_in) - 1;
}

/* Has the packet all contributions of its hop? */
static inline bool atp_is_complete(const struct atp_packet *packet)
{
	return packet->bitmap == atp_children(packet->fan_in[packet->hop & 1]);
}

static inline void atp_header_put(const struct atp_packet *packet, uint8_t *bytes)
{
	bytes[0] = ATP_VERSION;
	bytes[1] = packet->type;
	bytes[2] = packet->flags;
	bytes[3] = packet->hop;
	bytes_put32(bytes + 4, packet->sequence);
	bytes_put64(bytes + 8, packet->flow);
	bytes_put64(bytes + 16, packet->bitmap);
	bytes_put32(bytes + 24, packet->call);
	bytes_put16(bytes + 28, packet->owner);
	bytes_put16(bytes + 30, packet->group);
	bytes[32] = packet->fan_in[0];
	bytes[33] = packet->fan_in[1];
	bytes[34] = packet->scale;
	bytes[35] = packet->kind;
	bytes_put16(bytes + 36, packet->words);
	bytes_put16(bytes + 38, packet->next);
	bytes_put64(bytes + 40, packet->tag);
}

static inline void atp_header_get(const uint8_t *bytes, struct atp_packet *out)
{
	out->type = bytes[1];
	out->flags = bytes[2];
	out->hop = bytes[3];
	out->sequence = bytes_get32(bytes + 4);
	out->flow = bytes_get64(bytes + 8);
	out->bitmap = bytes_get64(bytes + 16);
	out->call = bytes_get32(bytes + 24);
	out->owner = bytes_get16(bytes + 28);
	out->group = bytes_get16(bytes + 30);
	out->fan_in[0] = bytes[32];
	out->fan_in[1] = bytes[33];
	out->scale = bytes[34];
	out->kind = bytes[35];
	out->words = bytes_get16(bytes + 36);
	out->next = bytes_get16(bytes + 38);
	out->tag = bytes_get64(bytes + 40);
}

static inline bool atp_gradient_valid(const struct atp_packet *packet)
{
	if (packet->hop >= ATP_HOPS || packet->words == 0 || packet->kind == 0 || packet->kind > ATP_KIND_LAST)
		return false;
	if (packet->fan_in[0] > ATP_CHILDREN_MAX || packet->fan_in[1] > ATP_CHILDREN_MAX ||
	    packet->fan_in[packet->hop & 1] == 0)
		return false;
	if (packet->group >= ATP_CHILDREN_MAX || (packet->fan_in[1] != 0 && packet->group >= packet->fan_in[1]))
		return false;
	if (packet->hop == 1 && (packet->fan_in[0] != 0 || packet->group != 0))
		return false;
	return packet->bitmap != 0 && (packet->bitmap & ~atp_children(packet->fan_in[packet->hop & 1])) == 0;
}

/* Fields that a type does not use are zero, so that a packet has one form. */
static inline bool atp_other_valid(const struct atp_packet *packet)
{
	if (packet->hop || packet->bitmap || packet->fan_in[0] || packet->fan_in[1] || packet->group)
		return false;
	if (packet->type == ATP_RESULT)
		return packet->words != 0 && packet->kind != 0 && packet->kind <= ATP_KIND_LAST;
	return packet->type >= ATP_HELLO && packet->type <= ATP_TYPE_LAST && packet->kind == 0 && packet->scale == 0;
}

/* Do the fields of a header make sense together? */
static inline bool atp_packet_valid(const struct atp_packet *packet)
{
	if ((packet->flags & ~ATP_FLAGS) != 0 || packet->words > ATP_WORDS_MAX)
		return false;
	return packet->type == ATP_GRADIENT ? atp_gradient_valid(packet) : atp_other_valid(packet);
}

enum atp_decoded {
	ATP_DECODED,
	ATP_SHORT,     /* less than a header */
	ATP_FOREIGN,   /* another version */
	ATP_MALFORMED, /* fields that no sender writes, or not as long as it says */
};

/*
 * A datagram of `length` bytes; its words begin at bytes + ATP_HEADER_BYTES. *out is written only with ATP_DECODED.
 * Whether a member sent it is another question: the tag's.
 */
static inline enum atp_decoded atp_packet_decode(const uint8_t *bytes, size_t length, struct atp_packet *out)
{
	struct atp_packet packet;

	if (length < ATP_HEADER_BYTES)
		return ATP_SHORT;
	if (bytes[0] != ATP_VERSION)
		return ATP_FOREIGN;
	atp_header_get(bytes, &packet);
	if (!atp_packet_valid(&packet) || length != ATP_HEADER_BYTES + 4 * (size_t)packet.words)
		return ATP_MALFORMED;
	*out = packet;
	return ATP_DECODED;
}

/* ---- bodies of hellos and welcomes: atp_packet.c ---- */

/* Why a welcome registers no member though the cookie is right. */
enum atp_refusal {
	ATP_REFUSED_NOT,
	ATP_REFUSED_FULL,   /* no room for another flow */
	ATP_REFUSED_QUOTA,  /* the host has as many flows as it may have */
	ATP_REFUSED_NUMBER, /* the address is another member of the flow */
	ATP_REFUSED_LAST = ATP_REFUSED_NUMBER,
};

#define ATP_GREETING_WORDS 8u
#define ATP_GREETING_BYTES (4 * ATP_GREETING_WORDS)

/*
 * A hello without a cookie is answered by a welcome with one; a hello that brings it back registers the member, so that
 * a switch sends nothing to an address that has not asked for it.
 */
struct atp_greeting {
	uint64_t cookie;      /* 0: none yet */
	uint64_t rate_bps;    /* of a welcome: bits per second of the switch's link; 0: not known */
	uint32_t slots;       /* of a welcome */
	uint16_t words_max;   /* the longest element that is sent, or that the switch has room for */
	bool is_registered;   /* of a welcome: the cookie was right, and nothing refuses the member */
	uint8_t refusal;      /* of a welcome: enum atp_refusal */
	uint64_t sent_ns;     /* of a hello, by the member's clock; the welcome gives it back */
};
void atp_greeting_encode(const struct atp_greeting *greeting, uint8_t out[ATP_GREETING_BYTES]);
/* False if unused bits are set; *out is then untouched. */
bool atp_greeting_decode(const uint8_t in[ATP_GREETING_BYTES], struct atp_greeting *out);

/* "gradient", "result" ...; NULL if unknown. */
const char *atp_type_name(uint8_t type);

#endif
