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

#define TALK_KEPT_MOST 131072u /* more: the other end does not read, and is given up */
#define TALK_OWED 32u          /* messages heard without a word of it                */

struct talk {
	uint64_t said, heard;
	uint64_t told;   /* what the other end knows that we have heard          */
	bool is_new;     /* the connection: nothing was said on it               */
	uint32_t in_vain; /* connections that ended since anything was heard     */
	struct control_msg *kept; /* a ring */
	uint32_t first, count, capacity;
};

enum talk_heard {
	TALK_NEW,
	TALK_AGAIN,  /* heard before, or nothing but word of what was heard */
	TALK_BROKEN, /* cannot be: a gap, or word of what was never said    */
};

/* Numbers the message and keeps it; NULL: no memory, or too many are kept. Valid until the next call. */
const struct control_msg *talk_say(struct talk *talk, const struct control_msg *msg);
/* The first that is kept with a number above this one, with word of what was heard until now; false: there is none. */
bool talk_next(struct talk *talk, uint64_t after, struct control_msg *out);
enum talk_heard talk_hear(struct talk *talk, const struct control_msg *msg);
/* A new connection: what was told on the old one may not have been heard. */
void talk_begin(struct talk *talk);
/* A connection has ended. How many have since anything was heard? */
uint32_t talk_broke(struct talk *talk);
/* Is it time for word of what was heard? Then that is it. */
bool talk_owes(struct talk *talk, struct control_msg *out);
void talk_fini(struct talk *talk);

#endif
