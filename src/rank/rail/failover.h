/*
 * failover.h - replaces connections whose rail does not carry them any more. Control thread only, except
 * failover_open(), failover_close() and failover_dial(); takes lanes' tokens.
 *
 * For jobs with several rails, and for jobs whose reset connections are to be made again (the setting resume). Every
 * lane has one connection to each rank that it needs, on the lane's rail. If that rail fails, the connection is
 * replaced by one on another rail, which continues at the very byte where the old one ended (transport/tcp/resume.h); a
 * control connection likewise (reliable.h). Upper layers notice only the delay: no call fails, and the shares of lanes
 * stay the same, because a lane takes its share along to the rail that it moves to.
 *
 * Of two ranks the lower one makes all connections between them, so that both ends have the same ones in the same
 * order. The higher one asks it to: CONTROL_DIAL, CONTROL_MOVE, CONTROL_RENEW.
 *
 * The sender detects that a rail has failed: for a quarter of the liveness interval nothing was acknowledged, and
 * nothing came from the other end; or at once, if the kernel says that the own interface has no link. A rail that was
 * left is used again only if no other is left.
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
	bool is_made;      /* there is one */
	bool moves;        /* its replacement is being made */
	bool is_stuck;
	bool is_severed;   /* to be replaced, on any rail */
	bool has_carried;  /* more than a greeting */
	bool was_reset;    /* the connection that is being replaced */
	bool has_given_up; /* the lane was told that it will not be replaced */
	struct path_patience patience;
	uint8_t tries;     /* replacements since data last got through */
	uint64_t stuck_ns; /* since when it is known to be stuck; 0: it is not */
};

struct failover {
	struct failover_lane *lanes; /* by rank and lane; NULL: nothing is replaced */
	uint8_t *bad;                /* by host: rails that do not reach it, a bit each */
	uint8_t *logged;               /* by host: rails whose failure was logged, a bit each */
	uint8_t down;                /* own interfaces without a link, a bit for each rail */
	uint64_t checked_ns;
	int netlink_fd;              /* readable when an interface has changed; -1: none */
};

ESP_CHECKED enum esp_status failover_open(struct rank *context, struct failure *failure);
void failover_close(struct rank *context); /* accepts a zeroed context */

/* Events of the control; argument: the rank. */
uint32_t failover_rail(void *argument, uint32_t peer, uint32_t lane, uint32_t attempt);
/* A connection was not made in time on this rail: others are tried first from now on. */
void failover_late(void *argument, uint32_t peer, uint32_t rail);
/* True if there has been a connection, which can be replaced. */
bool failover_has_made(const struct rank *context, uint32_t peer, uint32_t lane);
void failover_connected(struct rank *context, uint32_t peer, uint32_t lane, uint32_t rail, bool again);
void failover_unreachable(struct rank *context, uint32_t peer, uint32_t lane, const struct error *why);
void failover_links_changed(void *argument);
/* Checks all connections once in a while; returns the time of the next call at the latest. */
uint64_t failover_turn(struct rank *context, uint64_t now);

/* Subscribes to requests of higher ranks for connections to be made, moved or replaced. */
void failover_subscribe(struct control_subscribers *out);
/* Any thread: a lane needs a connection. */
void failover_dial(struct rank *context, uint32_t peer, uint32_t lane);
/* True if the connection was replaced repeatedly, and still nothing gets through: then it stays on its rail. */
bool failover_has_given_up(const struct rank *context, uint32_t peer, uint32_t lane);

/*
 * Pure: the order in which rails are tried: the good ones, the preferred one first, then by weight; then the others.
 * Returns the number of good ones.
 */
uint32_t failover_order(const uint32_t *weights, uint32_t rails, uint32_t bad, uint32_t preferred, uint8_t *out);

#endif
