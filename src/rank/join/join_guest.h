/*
 * join_guest.h - one connection to the leader while ranks join: who it is from, and how far it has come. For join_lead.c.
 */
#ifndef RANK_JOIN_JOIN_GUEST_H
#define RANK_JOIN_JOIN_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "rank/join/rendezvous.h"
#include "rank/join/session.h"

enum guest_state {
	GUEST_FREE,     /* an empty slot                                 */
	GUEST_UNPROVEN, /* may be anybody                                */
	GUEST_PROVEN,   /* has the key; its card is awaited              */
	GUEST_SEATED,   /* its card is here; the answer is awaited       */
	GUEST_ANSWERED, /* the answer is on its way                      */
	GUEST_REFUSED,  /* has the key but does not fit; is being told   */
};

struct guest {
	enum guest_state state;
	int fd;
	uint64_t since_ns, until_ns;
	struct session session;
	uint8_t inbox[RENDEZVOUS_ARRIVAL_BYTES]; /* its card; or what it is told when it is turned away */
};

/* Fills an empty slot; takes the descriptor. */
void guest_open(struct guest *guest, const struct handshake_config *handshake, int fd, uint64_t now_ns, uint64_t until_ns);

/* Where the connection comes from, as an address; where that is a mystery, "?". Returns text. */
const char *guest_origin(const struct guest *guest, char text[RENDEZVOUS_ORIGIN]);

/* Whether there is something left to be sent. */
bool guest_has_output(const struct guest *guest);

/* Of a guest that has nothing more to say: anything that can be read is its end. */
bool guest_is_there(const struct guest *guest);

/* Empties the slot. */
void guest_close(struct guest *guest);

#endif
