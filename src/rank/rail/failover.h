/*
 * failover.h - when an interface, or the path behind it, dies: what went there goes another way.
 *
 * For jobs with several rails, and for those that want connections which are reset to be made again (the setting resume). Every lane has one connection to each rank that it talks to, on the lane's rail. If that rail
 * does not carry it any more, it is replaced by one on another rail, which goes on at the very byte where the old one ended
 * (transport/tcp/resume.h); a control connection likewise (reliable.h). Nobody above notices but by the clock: no call fails,
 * and shares need not be cut anew, as a lane takes its share along to the rail that it moves to.
 *
 * Of two ranks the lower one makes all connections between them, so that both ends have the same ones in the same order. The
 * higher one asks it to: CONTROL_DIAL, CONTROL_MOVE.
 *
 * That a rail is dead is seen by whoever sends on it: for a quarter of the liveness interval nothing of what was sent has been
 * acknowledged, and nothing was heard of the other end; or at once, if the kernel says that the own interface has no link. A rail that was
 * left is used again only if no other is left.
 *
 * For the steward's thread alone, but for opening and closing.
 */
#ifndef RANK_RAIL_FAILOVER_H
#define RANK_RAIL_FAILOVER_H

#include "rank/failure.h"
#include "node/net/route.h"
#include "transport/tcp/tcp.h"
#include "wire/control_msg.h"

struct context;

#define DETOUR_NONE 0xffu /* no connection, or none on a rail */

/* The connection of a lane to a rank. */
struct detour_lane {
	uint8_t rail;
	bool is_made;      /* there is one                                            */
	bool moves;        /* another one is being made                               */
	bool is_stuck;
	bool is_severed;   /* it is to be replaced, on whatever rail                   */
	bool has_carried;  /* more than a greeting                                    */
	bool was_reset;    /* the one that is being replaced                          */
	bool has_given_up; /* the lane was told that it will not be replaced          */
	struct tcp_patience patience;
	uint8_t tries;     /* how often it was replaced since something got through   */
	uint64_t stuck_ns; /* since when we know; 0: it is not                        */
};

struct detour {
	struct detour_lane *lanes; /* by rank and lane; NULL: nothing is replaced */
	uint8_t *bad;              /* by host: rails that did not get through to it, a bit each   */
	uint8_t *told;             /* the same: the log knows */
	uint8_t down;              /* own interfaces without a link, a bit for each rail          */
	uint64_t looked_ns;
	int link_fd;               /* word of interfaces; -1: none */
};

ESP_CHECKED enum esp_status detour_open(struct context *context, struct failure *failure);
void detour_close(struct context *context); /* accepts a zeroed context */

/* The steward's events; argument: the context. */
uint32_t detour_rail(void *argument, uint32_t peer, uint32_t lane, uint32_t attempt);
/* A connection was not made there in time: others are tried first from now on. */
void detour_late(void *argument, uint32_t peer, uint32_t rail);
/* Has there been a connection yet, one that could be replaced? */
bool detour_has_made(const struct context *context, uint32_t peer, uint32_t lane);
void detour_connected(struct context *context, uint32_t peer, uint32_t lane, uint32_t rail, bool again);
void detour_unreachable(struct context *context, uint32_t peer, uint32_t lane, const struct error *why);
void detour_links(void *argument);
/* Looks at all connections once in a while; when it wants to be called again. */
uint64_t detour_turn(struct context *context, uint64_t now);

/* CONTROL_DIAL, CONTROL_MOVE and CONTROL_RENEW; false: it is of another kind. */
bool detour_message(struct context *context, uint32_t peer, const struct control_msg *msg);
/* Any thread: a lane needs a connection. */
void detour_dial(struct context *context, uint32_t peer, uint32_t lane);
/* Was it replaced again and again, and nothing gets through all the same? Then it is left where it is. */
bool detour_has_given_up(const struct context *context, uint32_t peer, uint32_t lane);

/* Pure: in which order rails are tried. Those that are good, the preferred one first, then by weight; then the others. Returns how many are good. */
uint32_t detour_order(const uint32_t *weights, uint32_t rails, uint32_t bad, uint32_t preferred, uint8_t *out);

#endif
