/*
 * step.h - the step of a switch for one packet: (limits, slot, packet, now) -> event.
 *
 * A slot sums the contributions to one number of one flow at one hop. The step changes the slot and the header of the
 * packet and returns an event; the event says how the words are handled (step_words_of) and whether the packet leaves
 * (step_leaves). Rules S1 to S6 of docs/protocol/atp.md are named where they stand.
 *
 * Pure: no calls, no loops but over words, no clock, no allocation. One text runs in a user-space switch, in a BPF
 * program and in virtual time. The caller finds the slot (step_index), holds it alone while the step and the words are
 * under way, and passes packets that atp_packet_valid() accepts. Zeroed is an empty slot.
 */
#ifndef SWITCH_STEP_STEP_H
#define SWITCH_STEP_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/atp_packet.h"

struct step_slot {
	uint64_t flow;
	uint64_t bitmap; /* children whose contributions are in; never 0 in a used slot */
	uint64_t tag;
	uint64_t touched_ns; /* of the latest contribution */
	uint32_t sequence;
	uint32_t call;
	uint16_t words;
	uint16_t group; /* at hop 0 */
	uint8_t hop;
	uint8_t fan_in;
	uint8_t scale;
	uint8_t kind;
	uint8_t is_used;
	uint8_t is_marked; /* a contribution carried ATP_MARK */
};

struct step_limits {
	uint64_t age_ns;    /* an id that was not touched for so long gives its slot up to another */
	uint16_t words_max; /* the room of a slot */
};

enum step_event {
	/* S1: forwarded untouched */
	STEP_BYPASSED,  /* it asks for that */
	STEP_NOT_CHILD, /* not from a child of this hop: a partial sum, or another switch's hop */
	STEP_TOO_LONG,  /* more words than a slot has room for */
	/* S2: the slot is empty */
	STEP_ALONE,          /* the only child: complete as it is, whatever the slot holds */
	STEP_RESEND_UNKNOWN, /* a resend never claims: forwarded */
	STEP_CLAIMED,        /* the first contribution */
	/* S3: the slot has another id, or the same with other contents */
	STEP_RECLAIMED, /* an old one: forgotten, and claimed for the packet */
	STEP_COLLIDED,  /* forwarded as a resend, so that no switch behind this one claims a slot for it */
	/* S4: the same id, an original */
	STEP_REPEATED,  /* its bit is there: dropped */
	STEP_ADDED,     /* and children are missing */
	STEP_COMPLETED, /* the sum leaves, and stays: one resend can fetch it again */
	/* S5: the same id, a resend: leaves with all that the slot had, which is free then */
	STEP_RELEASED,       /* its bit was there */
	STEP_RELEASED_ADDED, /* its own contribution is in */
	/* S6 */
	STEP_RESULT_FREED, /* a result, and the slot of its number */
	STEP_RESULT_PASSED,
	STEP_NOT_MINE, /* a hello, welcome or bye: the driver's */
	STEP_EVENTS,
};

/* The effect on the words of slot and packet. */
enum step_words {
	STEP_WORDS_NONE,
	STEP_WORDS_STORE,    /* slot = packet */
	STEP_WORDS_ADD,      /* slot += packet */
	STEP_WORDS_ADD_TAKE, /* slot += packet, then packet = slot */
	STEP_WORDS_TAKE,     /* packet = slot */
	STEP_WORDS_MERGE,    /* packet += slot */
};

/*
 * The slot of a number: slots of one window are neighbours, so that a flow never collides with itself while slots >=
 * its window.
 */
static inline uint64_t step_index(uint64_t flow, uint32_t sequence, uint64_t slots)
{
	uint64_t mixed = (flow ^ (flow >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
	return ((mixed >> 16) + sequence) % slots;
}

static inline enum step_words step_words_of(enum step_event event)
{
	switch (event) {
	case STEP_CLAIMED:
	case STEP_RECLAIMED: return STEP_WORDS_STORE;
	case STEP_ADDED: return STEP_WORDS_ADD;
	case STEP_COMPLETED: return STEP_WORDS_ADD_TAKE;
	case STEP_RELEASED: return STEP_WORDS_TAKE;
	case STEP_RELEASED_ADDED: return STEP_WORDS_MERGE;
	default: return STEP_WORDS_NONE;
	}
}

/*
 * Gradients that leave go to the owner (hop 0 and BYPASS, or where `next` is ATP_NO_NEXT) or to `next`; results to all
 * members.
 */
static inline bool step_leaves(enum step_event event)
{
	return event != STEP_CLAIMED && event != STEP_RECLAIMED && event != STEP_REPEATED && event != STEP_ADDED &&
	    event != STEP_NOT_MINE;
}

/* ---- parts of the step ---- */

static inline bool step_same_number(const struct step_slot *slot, const struct atp_packet *packet)
{
	return slot->is_used && slot->flow == packet->flow && slot->sequence == packet->sequence;
}

/* The id, and all that contributions to one number have in common. */
static inline bool step_fits(const struct step_slot *slot, const struct atp_packet *packet)
{
	return step_same_number(slot, packet) && slot->hop == packet->hop && slot->group == packet->group &&
	    slot->call == packet->call &&
	       slot->scale == packet->scale && slot->kind == packet->kind && slot->words == packet->words &&
	       slot->fan_in == packet->fan_in[packet->hop & 1];
}

static inline bool step_is_old(const struct step_slot *slot, const struct step_limits *limits, uint64_t now_ns)
{
	return (int64_t)(now_ns - slot->touched_ns) > (int64_t)limits->age_ns;
}

static inline void step_claim(struct step_slot *slot, const struct atp_packet *packet, uint64_t now_ns)
{
	slot->flow = packet->flow;
	slot->bitmap = packet->bitmap;
	slot->tag = packet->tag;
	slot->touched_ns = now_ns;
	slot->sequence = packet->sequence;
	slot->call = packet->call;
	slot->words = packet->words;
	slot->group = packet->group;
	slot->hop = packet->hop;
	slot->fan_in = packet->fan_in[packet->hop & 1];
	slot->scale = packet->scale;
	slot->kind = packet->kind;
	slot->is_used = 1;
	slot->is_marked = (packet->flags & ATP_MARK) != 0;
}

/* A complete sum of a group is one contribution of the second level, and an original there. */
static inline void step_raise(struct atp_packet *packet)
{
	if (packet->hop != 0 || packet->fan_in[1] == 0 || !atp_is_complete(packet))
		return;
	packet->hop = 1;
	packet->bitmap = UINT64_C(1) << (packet->group & 63);
	packet->group = 0;
	packet->fan_in[0] = 0;
	packet->flags &= (uint8_t) ~(ATP_RESEND | ATP_COLLISION);
}

/* The packet becomes the carrier of the slot's sum. */
static inline void step_take_along(const struct step_slot *slot, struct atp_packet *packet)
{
	packet->bitmap = slot->bitmap;
	packet->tag = slot->tag;
	if (slot->is_marked)
		packet->flags |= ATP_MARK;
	step_raise(packet);
}

static inline void step_count_in(struct step_slot *slot, const struct atp_packet *packet, uint64_t now_ns)
{
	slot->bitmap |= packet->bitmap;
	slot->tag += packet->tag;
	slot->is_marked |= (packet->flags & ATP_MARK) != 0;
	slot->touched_ns = now_ns;
}

static inline enum step_event step_original(struct step_slot *slot, struct atp_packet *packet, uint64_t now_ns)
{
	if (slot->bitmap & packet->bitmap)
		return STEP_REPEATED;
	step_count_in(slot, packet, now_ns);
	if (slot->bitmap != atp_children(slot->fan_in))
		return STEP_ADDED;
	step_take_along(slot, packet);
	return STEP_COMPLETED;
}

static inline enum step_event step_resend(struct step_slot *slot, struct atp_packet *packet, uint64_t now_ns)
{
	bool is_new = (slot->bitmap & packet->bitmap) == 0;

	if (is_new)
		step_count_in(slot, packet, now_ns);
	step_take_along(slot, packet);
	slot->is_used = 0;
	return is_new ? STEP_RELEASED_ADDED : STEP_RELEASED;
}

/* is_child: the packet comes from a child of this switch at the packet's hop, not from another switch's rack. */
static inline enum step_event step_gradient(const struct step_limits *limits, struct step_slot *slot,
                                            struct atp_packet *packet, bool is_child, uint64_t now_ns)
{
	bool was_old = false;

	if (packet->flags & ATP_BYPASS)
		return STEP_BYPASSED;
	if (!is_child || (packet->bitmap & (packet->bitmap - 1)) != 0)
		return STEP_NOT_CHILD;
	if (packet->words > limits->words_max)
		return STEP_TOO_LONG;
	if (packet->fan_in[packet->hop & 1] == 1) {
		step_raise(packet);
		return STEP_ALONE;
	}
	if (slot->is_used && !step_fits(slot, packet)) {
		if (!step_is_old(slot, limits, now_ns)) {
			packet->flags |= ATP_COLLISION | ATP_RESEND;
			return STEP_COLLIDED;
		}
		slot->is_used = 0;
		was_old = true;
	}
	if (!slot->is_used && (packet->flags & ATP_RESEND))
		return STEP_RESEND_UNKNOWN;
	if (!slot->is_used) {
		step_claim(slot, packet, now_ns);
		return was_old ? STEP_RECLAIMED : STEP_CLAIMED;
	}
	return packet->flags & ATP_RESEND ? step_resend(slot, packet, now_ns) : step_original(slot, packet, now_ns);
}

static inline enum step_event step_result(struct step_slot *slot, const struct atp_packet *packet)
{
	if (!step_same_number(slot, packet))
		return STEP_RESULT_PASSED;
	slot->is_used = 0;
	return STEP_RESULT_FREED;
}

/* ---- the step itself: step.c ---- */

enum step_event step_run(const struct step_limits *limits, struct step_slot *slot, struct atp_packet *packet,
                         bool is_child, uint64_t now_ns);

/*
 * Does to the words as the event says, word by word at any address. A user-space switch may do the same with vectors
 * (step_words_of, math_fold); the packet's words are changed in place.
 */
void step_run_words(enum step_event event, uint32_t *slot_words, void *packet_words, uint32_t count);

#endif
