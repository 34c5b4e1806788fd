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
 * For the control's thread alone, but for opening and closing.
 */
#ifndef RANK_RAIL_FAILOVER_H
#define RANK_RAIL_FAILOVER_H

#include "rank/failure.h"
#include "node/net/route.h"
#include "transport/path.h"
#include "node/control/control.h"

struct rank;

#define FAILOVER_NONE 0xffu /* no connection, or none on a rail */

/* The connection of a lane to a rank. */
struct failover_lane {
	uint8_t rail;
	bool is_made;      /* there is one                                            */
	bool moves;        /* another one is being made                               */
	bool is_stuck;
	bool is_severed;   /* it is to be replaced, on whatever rail                   */
	bool has_carried;  /* more than a greeting                                    */
	bool was_reset;    /* the one that is being replaced                          */
	bool has_given_up; /* the lane was told that it will not be replaced          */
	struct path_patience patience;
	uint8_t tries;     /* how often it was replaced since something got through   */
	uint64_t stuck_ns; /* since when we know; 0: it is not                        */
};

struct failover {
	struct failover_lane *lanes; /* by rank and lane; NULL: nothing is replaced */
	uint8_t *bad;              /* by host: rails that did not get through to it, a bit each   */
	uint8_t *told;             /* the same: the log knows */
	uint8_t down;              /* own interfaces without a link, a bit for each rail          */
	uint64_t looked_ns;
	int netlink_fd;               /* word of interfaces; -1: none */
};

ESP_CHECKED enum esp_status failover_open(struct rank *context, struct failure *failure);
void failover_close(struct rank *context); /* accepts a zeroed context */

/* The control's events; argument: the context. */
uint32_t failover_rail(void *argument, uint32_t peer, uint32_t lane, uint32_t attempt);
/* A connection was not made there in time: others are tried first from now on. */
void failover_late(void *argument, uint32_t peer, uint32_t rail);
/* Has there been a connection yet, one that could be replaced? */
bool failover_has_made(const struct rank *context, uint32_t peer, uint32_t lane);
void failover_connected(struct rank *context, uint32_t peer, uint32_t lane, uint32_t rail, bool again);
void failover_unreachable(struct rank *context, uint32_t peer, uint32_t lane, const struct error *why);
void failover_links_changed(void *argument);
/* Looks at all connections once in a while; when it wants to be called again. */
uint64_t failover_turn(struct rank *context, uint64_t now);

/* What other ranks say of connections that are to be made or moved. */
void failover_subscribe(struct control_subscribers *out);
/* Any thread: a lane needs a connection. */
void failover_dial(struct rank *context, uint32_t peer, uint32_t lane);
/* Was it replaced again and again, and nothing gets through all the same? Then it is left where it is. */
bool failover_has_given_up(const struct rank *context, uint32_t peer, uint32_t lane);

/* Pure: in which order rails are tried. Those that are good, the preferred one first, then by weight; then the others. Returns how many are good. */
uint32_t failover_order(const uint32_t *weights, uint32_t rails, uint32_t bad, uint32_t preferred, uint8_t *out);

#endif
