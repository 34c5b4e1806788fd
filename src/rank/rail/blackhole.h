/*
 * blackhole.h - finds data connections on which nothing arrives, and why. Control thread only; I/O on its sockets, and
 * it takes lanes' tokens.
 *
 * TCP reports no path that loses everything: it retransmits, less and less often, for minutes. When a lane's connection
 * has had some timeouts in a row, its rail is probed: a new connection to the same rank, whose handshake is a few small
 * packets. If the probe is not answered, the network is down there, and calls wait until their deadlines, as it may
 * come back. A warning is logged when that has lasted for a liveness interval: most often the whole host is gone, and
 * the rank is considered dead before, which explains everything (presence.h).
 *
 * If the probe is answered and the lane's connection is still stuck, large packets may be lost on the way (an MTU that
 * is set too high, without an ICMP message); or the link is so congested that one segment was lost several times, while
 * small ones find room. So the probe connection sends a size probe: one packet of the largest size. If it arrives, the
 * link is congested, and the call waits. If it is lost repeatedly, and nothing is acknowledged on the lane's connection
 * either, the calls that wait for that rank fail with that reason. In a job with several rails the others are tried
 * first (failover.h).
 */
#ifndef RANK_RAIL_BLACKHOLE_H
#define RANK_RAIL_BLACKHOLE_H

#include "base/error.h"
#include "transport/path.h"

struct rank;

struct blackhole {
	uint64_t checked_ns;
	bool is_probing;          /* a probe awaits its answer */
	uint32_t peer, lane;      /* of the connection in question */
	uint32_t unanswered;      /* probes in a row */
	uint64_t unanswered_ns;   /* since when, if there are any */
	bool is_logged;           /* the warning was logged */
	bool is_probing_size;     /* a size probe is under way on fd */
	int fd;
	uint32_t lost;            /* size probes in a row, while acked_bytes did not change */
	uint64_t acked_bytes;     /* on the connection in question */
};

/* Checks once in a while, if there are calls that take long. */
void blackhole_check(struct rank *context, uint64_t now);
/* The probe was answered: takes fd, the connection; or it was not: fd is -1, and why has the reason. */
void blackhole_answered(struct rank *context, uint32_t peer, uint32_t rail, int fd, const struct error *why);
/* Closes the size probe's connection. Accepts a zeroed struct. */
void blackhole_fini(struct blackhole *blackhole);

/* Fails the communicators of the calls that wait for the rank, with that reason. */
void blackhole_fail(struct rank *context, uint32_t rank, const char *why);

/* True if unanswered probes have lasted long enough for the warning. Pure. */
bool blackhole_has_lasted(uint64_t unanswered_ns, uint64_t now, uint32_t liveness_ms);

/* From a connection's statistics: it is stuck; it may be stuck because of its segment size. Pure. */
bool blackhole_is_stuck(const struct path_stats *stats);
bool blackhole_may_be_about_size(const struct path_stats *stats);

/* The outcome of a size probe, from the statistics of its connection. Pure. */
enum blackhole_size_probe {
	SIZE_PROBE_UNDER_WAY,
	SIZE_PROBE_ARRIVED, /* or the receiver has closed the connection: an answer as well */
	SIZE_PROBE_LOST,    /* and all of the kernel's retransmissions */
};
enum blackhole_size_probe blackhole_size_probe(const struct path_stats *stats);

#endif
