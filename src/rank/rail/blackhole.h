/*
 * blackhole.h - connections of lanes on which nothing gets through, and why.
 *
 * TCP says nothing of a path that loses everything: it sends again, less and less often, for minutes. When a lane's
 * connection has done so some times in a row, its rail is knocked at: a new connection to the same rank, whose
 * handshake is a few small packets. If nobody answers, the network is down there, and calls wait until their
 * deadlines, as it may come back. The log is told when that has lasted as long as a rank may be silent: most often the whole host is gone, and
 * the rank is given up before, which says it all (presence.h).
 *
 * If that stands and the other is still stuck, it may be that large packets get lost on the way (an MTU that somebody set too high, and no
 * word of it); or that the link is so crowded that one segment has been unlucky for some times, and small ones find room where large ones do
 * not. So the new connection is used for a sounding: one packet as large as they can be. If it arrives the link is crowded, and
 * the call waits. If it does not, again and again, and neither does anything on the other connection, the calls that wait for that rank fail with
 * that reason. In a job with several rails other ways are tried first (failover.h).
 *
 * For the control's thread alone.
 */
#ifndef RANK_RAIL_BLACKHOLE_H
#define RANK_RAIL_BLACKHOLE_H

#include "base/error.h"
#include "transport/path.h"

struct rank;

struct blackhole {
	uint64_t looked_ns;
	bool knocks;              /* an answer is awaited        */
	uint32_t peer, lane;      /* of the connection in question */
	uint32_t unanswered;      /* knocks in a row             */
	uint64_t unanswered_ns;   /* since when, if there are any */
	bool was_told;            /* the log knows               */
	bool sounds;              /* a large packet is under way on fd   */
	int fd;
	uint32_t lost;            /* such packets in a row, since acked_bytes is all that has arrived on the connection in question */
	uint64_t acked_bytes;
};

/* Looks once in a while, if there is work that takes long. */
void blackhole_look(struct rank *context, uint64_t now);
/* The knock was answered, by this connection, which is taken; or it was not (-1), and why. */
void blackhole_answered(struct rank *context, uint32_t peer, uint32_t rail, int fd, const struct error *why);
/* Closes what is open. Accepts a zeroed struct. */
void blackhole_fini(struct blackhole *blackhole);

/* Calls that wait for the rank end with that reason. */
void blackhole_fail(struct rank *context, uint32_t rank, const char *why);

/* Does the log have to know that knocks stay unanswered? Pure. */
bool blackhole_has_lasted(uint64_t unanswered_ns, uint64_t now, uint32_t liveness_ms);

/* What a connection's numbers say. Pure. */
bool blackhole_is_stuck(const struct path_stats *stats);
bool blackhole_may_be_about_size(const struct path_stats *stats);

/* What has become of a large packet, by the numbers of its connection. Pure. */
enum blackhole_sounding {
	SOUNDING_UNDER_WAY,
	SOUNDING_ARRIVED, /* or whoever got it has closed the connection: an answer as well */
	SOUNDING_LOST,    /* as often as the kernel has tried                               */
};
enum blackhole_sounding blackhole_sounding(const struct path_stats *stats);

#endif
