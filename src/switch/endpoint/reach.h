/*
 * reach.h - do the members of a flow reach each other straight?
 *
 * A switch that all members reach does not show it: a firewall, an address translation or a path for short packets only
 * may lie between two of them. Resends, asks and byes go straight, so a flow is used only once each member has sent a
 * packet of full length to each other one, and has had an answer. Probes are repeated, at first often, later seldom.
 *
 * Pure; embedded by its user.
 */
#ifndef SWITCH_ENDPOINT_REACH_H
#define SWITCH_ENDPOINT_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/endpoint/endpoint.h"
#include "switch/endpoint/tag.h"

struct reach {
	const struct tag_keys *keys;
	uint64_t flow;
	uint16_t self, members, words;
	uint64_t answered;  /* by member: it has answered */
	uint64_t owed;      /* members that wait for an answer of this one */
	uint64_t unsent;    /* probes of this round */
	uint64_t round_ns;  /* the next one begins */
	uint64_t pause_ns;  /* after that round */
};

/* members: at most ATP_CHILDREN_MAX; 0: there is nothing to be shown. words: of a probe. */
void reach_init(struct reach *reach, const struct tag_keys *keys, uint64_t flow, uint16_t self, uint16_t members,
                uint16_t words, uint64_t now_ns);
/* Have all others answered? */
bool reach_is_whole(const struct reach *reach);
/* The lowest member that has not answered; there is one. */
uint16_t reach_missing(const struct reach *reach);

/* A probe or an answer that atp_packet_valid() accepts. */
void reach_packet(struct reach *reach, const struct atp_packet *packet);
/* The next probe or answer to send now; false: none before reach_wake_ns(). */
bool reach_next(struct reach *reach, uint64_t now_ns, struct endpoint_out *out);
uint64_t reach_wake_ns(const struct reach *reach);

#endif
