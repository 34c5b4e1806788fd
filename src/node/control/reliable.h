/*
 * reliable.h - numbered, acknowledged control messages between two nodes, over one control connection after another.
 * Pure: no I/O. Control thread only.
 *
 * Messages are numbered from 1 on in each direction, and kept until the other end has acknowledged them. When a new
 * connection takes the place of one that broke, all kept messages are sent again on it, in order; the receiver drops
 * numbers that it has received before. So on any connection numbers follow each other without a gap, beginning with an
 * unacknowledged one, and every message is delivered once and in order.
 *
 * Every message carries an acknowledgement. An end without messages sends one alone now and then, and on every new
 * connection: so the other end can tell a connection that works from one that is merely open.
 */
#ifndef NODE_CONTROL_RELIABLE_H
#define NODE_CONTROL_RELIABLE_H

#include <stdbool.h>

#include "wire/control_msg.h"

#define RELIABLE_KEPT_MOST 131072u /* with more the other end does not read, and is considered dead */
#define RELIABLE_OWED 32u          /* messages received without an acknowledgement */

struct reliable {
	uint64_t said, heard; /* the last number sent; the last received */
	uint64_t told;    /* the last number acknowledged to the other end */
	bool is_new;      /* the connection: nothing was sent on it */
	uint32_t in_vain; /* connections that ended since a message last came */
	struct control_msg *kept; /* a ring */
	uint32_t first, count, capacity;
};

enum reliable_heard {
	RELIABLE_NEW,
	RELIABLE_AGAIN,  /* a duplicate, or only an acknowledgement */
	RELIABLE_BROKEN, /* impossible: a gap, or the acknowledgement of a message that was never sent */
};

/* Numbers the message and keeps it; NULL: no memory, or too many are kept. Valid until the next call. */
const struct control_msg *control_reliable_say(struct reliable *reliable, const struct control_msg *msg);
/* The first kept message with a number above `after`, with an acknowledgement of all messages so far; false: none. */
bool control_reliable_next(struct reliable *reliable, uint64_t after, struct control_msg *out);
enum reliable_heard control_reliable_hear(struct reliable *reliable, const struct control_msg *msg);
/* A new connection: acknowledgements on the old one may have been lost. */
void control_reliable_begin(struct reliable *reliable);
/* A connection has ended. Returns how many have since a message last came. */
uint32_t control_reliable_broke(struct reliable *reliable);
/* True if an acknowledgement is due: in *out. */
bool control_reliable_owes(struct reliable *reliable, struct control_msg *out);
void control_reliable_fini(struct reliable *reliable);

#endif
