/*
 * timing.h - how the time for probing is spent: passes of all pairs, slots of a round. Pure.
 */
#ifndef NETWORK_PROBE_TIMING_H
#define NETWORK_PROBE_TIMING_H

#include <stdbool.h>
#include <stdint.h>

struct timing_wish {
	uint32_t hosts;
	bool latency, bandwidth;
	double seconds; /* that all of it should take, where so many hosts can be probed in so little */
};

struct timing {
	uint32_t rounds; /* of a pass */
	uint32_t latency_passes, bandwidth_passes; /* 0: not wanted */
	uint64_t latency_slot_ns, bandwidth_slot_ns;
	uint32_t asks;             /* of a latency slot        */
	uint64_t patience_ns;      /* for each answer          */
	uint32_t latency_again, bandwidth_again; /* rounds of those who are probed again, at most */
	uint64_t latency_again_ns; /* longer: perhaps they are far */
	uint32_t within_rounds, between_rounds; /* of groups that were found */
	uint64_t within_slot_ns, between_slot_ns;
	double seconds;            /* that it takes at the most, without grouping */
};

/* At least 2 hosts. */
void timing_make(const struct timing_wish *wish, struct timing *out);

/* How many seconds a host may be late for a meeting: it may have measured all the time, or group the others, which takes the longer the more they are. */
double timing_patience(const struct timing *timing, uint32_t hosts);

/* What a slot of bandwidth is cut into: connecting, warming up, counting. */
uint64_t timing_connect_ns(uint64_t slot_ns);
uint64_t timing_warm_ns(uint64_t slot_ns); /* connecting included */

#endif
