/*
 * join_guest.h - one connection to the leader while ranks join, and how far it has come. For join_lead.c.
 */
#ifndef RANK_JOIN_JOIN_GUEST_H
#define RANK_JOIN_JOIN_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "rank/join/rendezvous.h"
#include "rank/join/session.h"

enum guest_state {
	GUEST_FREE,     /* an empty slot                                 */
	GUEST_UNPROVEN, /* not proved yet */
	GUEST_PROVEN,   /* has the key; its node info is awaited */
	GUEST_ARRIVED,   /* its node info is here; the answer is awaited */
	GUEST_ANSWERED, /* the answer is being sent */
	GUEST_REFUSED,  /* has the key but does not fit; the reason is being sent */
};

struct guest {
	enum guest_state state;
	int fd;
	uint64_t since_ns, until_ns;
	struct session session;
	uint8_t inbox[RENDEZVOUS_ARRIVAL_BYTES]; /* its node info; or the reason when it is refused */
};

/* Initializes an empty slot; takes the descriptor. */
void guest_open(struct guest *guest, const struct handshake_config *handshake, int fd, uint64_t now_ns,
                uint64_t until_ns);

/* The address that the connection comes from; "?" if unknown. Returns text. */
const char *guest_origin(const struct guest *guest, char text[RENDEZVOUS_ORIGIN]);

/* True if there are bytes to send. */
bool guest_has_output(const struct guest *guest);

/* For a guest that has nothing more to send: false once its connection has ended or it sends anything. */
bool guest_is_there(const struct guest *guest);

/* Closes the connection and empties the slot. */
void guest_close(struct guest *guest);

#endif
