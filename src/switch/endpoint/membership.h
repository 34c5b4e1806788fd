/*
 * membership.h - a member's view of its switch: whether it is there, and whether it knows the member.
 *
 * A switch holds its members in memory only, and forgets them when it starts anew. So a member says hello every
 * `busy_ns` while a call waits and every `idle_ns` otherwise; a welcome that says "registered" makes the switch alive.
 * Two hellos without an answer make it gone, unless the member itself came late to look for it. When results stay
 * away, the switch is suspected: hellos follow each other every `probe_ns` and two round trips until it answers. A
 * hello carries the cookie of the last welcome, and a welcome with another one is answered at once: so a switch that
 * was started anew knows its members again within one hello. It has lost what it held, so it is gone for a moment.
 *
 *     unknown --welcome, registered--> alive
 *     alive --two hellos unanswered, or another cookie--> gone
 *     gone --welcome, registered--> alive
 *
 * Pure; embedded by its user.
 */
#ifndef SWITCH_ENDPOINT_MEMBERSHIP_H
#define SWITCH_ENDPOINT_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/endpoint/endpoint.h"

enum membership_state {
	MEMBERSHIP_UNKNOWN, /* no welcome yet */
	MEMBERSHIP_ALIVE,   /* registered, and answers */
	MEMBERSHIP_GONE,    /* was alive, and is silent */
};

struct membership_config {
	uint64_t flow;
	uint16_t self;
	uint16_t words_max; /* the longest element that is sent */
	uint64_t busy_ns, idle_ns;
	uint64_t probe_ns; /* not below the lateness of the caller's timer */
};

struct membership {
	struct membership_config config;
	uint8_t state; /* enum membership_state */
	uint8_t unanswered;
	bool is_busy, answers_now, is_suspected;
	uint64_t cookie;
	uint64_t hello_ns; /* when the next hello is due */
	struct atp_greeting switch_info; /* of the last welcome */
	uint64_t round_trip_ns;          /* of the last welcome that answered a hello; 0: none */
	uint8_t body[ATP_GREETING_BYTES];
};

void membership_init(struct membership *membership, const struct membership_config *config, uint64_t now_ns);

/* Waits a call? A hello is due at once when the first one begins to. */
void membership_busy(struct membership *membership, bool is_busy, uint64_t now_ns);

/* Results stay away: is the switch still there? */
void membership_suspect(struct membership *membership, uint64_t now_ns);

/* A hello to send now; false: none before membership_wake_ns(). Going from alive to gone happens here. */
bool membership_next(struct membership *membership, uint64_t now_ns, struct endpoint_out *out);
uint64_t membership_wake_ns(const struct membership *membership);

/* A welcome, and its body. False: not for this member. */
bool membership_welcome(struct membership *membership, const struct atp_packet *packet, const uint8_t *body,
                        uint64_t now_ns);

/* Alive, with slots that take words_max words. */
bool membership_helps(const struct membership *membership);

#endif
