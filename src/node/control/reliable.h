/*
 * reliable.h - what two ranks tell each other over control connections, whichever of these carry it. Pure.
 *
 * Messages are numbered from 1 on, each way, and kept until the other end has said that it heard them. When a new connection
 * takes the place of one that broke, all that is kept is said again on it, in order; whoever hears a number that it has heard
 * before drops it. So on any connection numbers follow each other without a gap, beginning with one that was not
 * acknowledged, and every message is heard once and in order.
 *
 * Word of what was heard goes with every message; who has nothing to say says so alone now and then, and on every new connection: so
 * one that works can be told from one that only stands.
 */
#ifndef NODE_CONTROL_RELIABLE_H
#define NODE_CONTROL_RELIABLE_H

#include <stdbool.h>

#include "wire/control_msg.h"

#define RELIABLE_KEPT_MOST 131072u /* more: the other end does not read, and is given up */
#define RELIABLE_OWED 32u          /* messages heard without a word of it                */

struct reliable {
	uint64_t said, heard;
	uint64_t told;   /* what the other end knows that we have heard          */
	bool is_new;     /* the connection: nothing was said on it               */
	uint32_t in_vain; /* connections that ended since anything was heard     */
	struct control_msg *kept; /* a ring */
	uint32_t first, count, capacity;
};

enum reliable_heard {
	RELIABLE_NEW,
	RELIABLE_AGAIN,  /* heard before, or nothing but word of what was heard */
	RELIABLE_BROKEN, /* cannot be: a gap, or word of what was never said    */
};

/* Numbers the message and keeps it; NULL: no memory, or too many are kept. Valid until the next call. */
const struct control_msg *reliable_say(struct reliable *reliable, const struct control_msg *msg);
/* The first that is kept with a number above this one, with word of what was heard until now; false: there is none. */
bool reliable_next(struct reliable *reliable, uint64_t after, struct control_msg *out);
enum reliable_heard reliable_hear(struct reliable *reliable, const struct control_msg *msg);
/* A new connection: what was told on the old one may not have been heard. */
void reliable_begin(struct reliable *reliable);
/* A connection has ended. How many have since anything was heard? */
uint32_t reliable_broke(struct reliable *reliable);
/* Is it time for word of what was heard? Then that is it. */
bool reliable_owes(struct reliable *reliable, struct control_msg *out);
void reliable_fini(struct reliable *reliable);

#endif
