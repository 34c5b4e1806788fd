/*
 * sender_state.h - the state of a sender; private to sender*.c.
 */
#ifndef SWITCH_ENDPOINT_SENDER_STATE_H
#define SWITCH_ENDPOINT_SENDER_STATE_H

#include "switch/endpoint/sender.h"

#define SENDER_NONE UINT32_MAX
#define SENDER_HIGHER_RESULTS 3u /* of the same owner: then a number counts as lost */

enum number_state {
	NUMBER_ACKNOWLEDGED, /* its result is here; the place is free for a later number */
	NUMBER_OWN,          /* this member owns it */
	NUMBER_UNSENT,
	NUMBER_SENT,      /* an original, through the switch */
	NUMBER_RESENT,    /* a resend, through the switch    */
	NUMBER_BYPASSING, /* straight to the owner, first or in turn */
	NUMBER_RETURNED,  /* through the switch again, in turn       */
};


struct number {
	struct sender_element element;
	uint64_t sent_ns, due_ns;
	uint64_t tag;
	uint32_t before, after; /* in flight to the same owner, in order: numbers, or SENDER_NONE */
	uint8_t state;          /* enum number_state */
	uint8_t attempts;
	uint8_t higher;  /* results of numbers of the same owner that were sent after it */
	bool is_overdue; /* repaired at the next occasion */
};

/* Numbers in flight to one owner. */
struct lineup {
	uint32_t first, last; /* numbers; SENDER_NONE: empty */
	bool wants_bye;
};

struct sender {
	struct sender_config config;
	struct number *numbers; /* of a number: at its remainder */
	struct lineup *lineups; /* by owner */
	struct window window;
	uint32_t begin, next, end; /* lowest unacknowledged, lowest unsent, not yet offered */
	uint32_t asked_end;        /* numbers below were asked for: no slot waits for this member's */
	uint64_t in_flight_bytes;
	struct patience patience;
	uint64_t due_ns;             /* no number in flight is due before */
	uint64_t least_due_ns;       /* of the numbers that a repair has passed */
	uint32_t repair_at;          /* where the repair under way goes on */
	uint32_t byes;               /* owners that want one */
	bool wants_bye_to_all;       /* through the switch */
	bool is_repairing, has_overdue, uses_switch;
	bool has_waiting; /* numbers whose time is over, and that wait for the next result or round */
	struct sender_counters counters;
};

static inline struct number *sender_number(const struct sender *sender, uint32_t sequence)
{
	return &sender->numbers[sequence & (sender->config.window - 1)];
}

static inline bool sender_is_in_flight(const struct number *number)
{
	return number->state >= NUMBER_SENT;
}

/* On the wire. */
uint32_t sender_packet_bytes(const struct number *number);
void sender_number_enter(struct number *number, enum number_state to);
/* Own numbers are not sent: next is a number to send, or the end. */
void sender_skip_own(struct sender *sender);
/* In flight to its owner, after those that are. */
void sender_lineup_append(struct sender *sender, uint32_t sequence);

#endif
