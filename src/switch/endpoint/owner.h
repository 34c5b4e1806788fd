/*
 * owner.h - the member that gives sums back: collects contributions, adds what no switch has added, keeps results for
 * members that lost them.
 *
 * One owner object serves the numbers of one flow that one member owns. Contributions come in any order, repeated,
 * alone or as partial sums; results go out through the switch to all (and straight, where a contribution came so), or
 * straight to a member that asked again. A
 * complete element is kept until no member can lack it (rule O5): no member sends a number that is `window` or more
 * above one that it has no result of.
 *
 * A member that waits for long sends its contribution straight to the owner. Then the owner asks the members whose
 * contributions are missing (O6): theirs may lie in a slot that nothing completes any more.
 *
 * Pure: no I/O, no clock, no thread; all memory is taken when it is opened. One thread at a time.
 */
#ifndef SWITCH_ENDPOINT_OWNER_H
#define SWITCH_ENDPOINT_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "switch/endpoint/element.h"
#include "switch/endpoint/endpoint.h"
#include "switch/endpoint/tag.h"

struct owner_config {
	uint64_t flow;
	uint16_t self; /* shape_members() or above: it has no part of its own */
	const struct shape *shape;
	const struct tag_keys *keys;
	uint32_t window;    /* numbers; a power of two, equal on all members */
	uint32_t words_max; /* of an element */
	/* held at once: as many of any 2 * window numbers in a row as it owns. With fewer a flow may stand still. */
	uint32_t elements;
};

enum owner_event {
	OWNER_REFUSED,   /* O1: tag, shape or contents are not those of this number */
	OWNER_ANSWERED,  /* O2: complete and kept: the result is sent again */
	OWNER_COMPLETE,  /* O2: complete, and no answer is needed: a late original */
	OWNER_FORGOTTEN, /* O2: complete long ago */
	OWNER_ADDED,     /* O3 */
	OWNER_REPLACED,  /* O3: it has all that was held */
	OWNER_OVERLAPS,  /* O3: dropped */
	OWNER_COMPLETED, /* O4: the last contribution; the result is on its way to all */
	OWNER_FULL,      /* no element is free: dropped, its sender will try again */
	OWNER_EVENTS,
};

/* The owner's own part of a number; words are borrowed until the number is complete. */
struct owner_part {
	const uint32_t *words;
	uint32_t call;
	uint16_t count;
	uint8_t scale, kind;
};

struct owner;

/* Bytes of elements that a configuration needs, for a budget. */
uint64_t owner_bytes(const struct owner_config *config);
ESP_CHECKED enum esp_status owner_open(const struct owner_config *config, struct owner **out, struct error *err);
void owner_close(struct owner *owner);

/* A gradient for this owner that atp_packet_valid() accepts. */
enum owner_event owner_packet(struct owner *owner, const struct atp_packet *packet, const void *words);

/*
 * The owner's own part: OWNER_ADDED, OWNER_COMPLETED, or OWNER_FULL (try again after a result). It overrules
 * contributions with other contents. Each number is given once.
 */
enum owner_event owner_own(struct owner *owner, uint32_t sequence, const struct owner_part *part);

/* The sum of a complete number; NULL once it is forgotten. */
const uint32_t *owner_sum(const struct owner *owner, uint32_t sequence);

/* The next packet to send; false: none. */
bool owner_next(struct owner *owner, struct endpoint_out *out);

/* Results for all go through the switch, or one by one to each member. */
void owner_use_switch(struct owner *owner, bool use);

/* ---- the end of a flow ---- */

/* A bye with ATP_DONE. */
void owner_bye(struct owner *owner, const struct atp_packet *packet);
/* Has every member said that it has all results of this owner? */
bool owner_is_quiet(const struct owner *owner);
/* Has this one? */
bool owner_is_done(const struct owner *owner, uint16_t member);
/*
 * Sends the last result again to members that have not said so, straight and through the switch in turn: a member that
 * has nothing left to do answers with a bye.
 */
void owner_linger(struct owner *owner);

struct owner_counters {
	uint64_t events[OWNER_EVENTS];
	uint64_t taken;     /* contributions of single members that the owner added itself, past the switch */
	uint64_t asked;     /* packets of O6 */
	uint64_t overruled; /* elements whose contents the own part did not share */
};
const struct owner_counters *owner_counters(const struct owner *owner);
void owner_counters_add(struct owner_counters *to, const struct owner_counters *more);
uint32_t owner_elements_held(const struct owner *owner);
const char *owner_event_name(enum owner_event event);

#endif
