/*
 * stall.h - connections of lanes on which nothing gets through, and why.
 *
 * TCP says nothing of a path that loses everything: it sends again, less and less often, for minutes. When a lane's
 * connection has done so some times in a row, its rail is knocked at: a new connection to the same rank, whose
 * handshake is a few small packets. If that stands and the other is still stuck, large packets get lost on the
 * way (an MTU that somebody set too high, and no word of it): the calls that wait for that rank
 * fail with that reason. If nobody answers either, the network is down there, and calls wait until their
 * deadlines, as it may come back. In a job with several rails other ways are tried first (detour.h).
 *
 * For the steward's thread alone.
 */
#ifndef RUNTIME_STALL_H
#define RUNTIME_STALL_H

#include "base/error.h"
#include "transport/tcp/tcp.h"

struct context;

struct stall {
	uint64_t looked_ns;
	bool knocks;              /* an answer is awaited        */
	uint32_t peer, lane;      /* of the connection in question */
	uint32_t unanswered;      /* knocks in a row             */
	bool was_told;            /* the log knows               */
};

/* Looks once in a while, if there is work that takes long. */
void stall_look(struct context *context, uint64_t now);
/* why: NULL: the knock was answered. */
void stall_answered(struct context *context, uint32_t peer, uint32_t rail, const struct error *why);

/* Calls that wait for the rank end with that reason. */
void stall_fail(struct context *context, uint32_t rank, const char *why);

/* What a connection's numbers say. Pure. */
bool stall_is_stuck(const struct tcp_stats *stats);
bool stall_is_about_size(const struct tcp_stats *stats);

#endif
