/*
 * timing.h - divides the time for probing: passes over all pairs, slots of a round. Pure.
 */
#ifndef NETWORK_PROBE_TIMING_H
#define NETWORK_PROBE_TIMING_H

#include <stdbool.h>
#include <stdint.h>

struct timing_wish {
	uint32_t hosts;
	bool latency, bandwidth;
	double seconds; /* for all of it, if so many hosts can be probed in so little */
};

struct timing {
	uint32_t rounds; /* of a pass */
	uint32_t latency_passes, bandwidth_passes; /* 0: not measured */
	uint64_t latency_slot_ns, bandwidth_slot_ns;
	uint32_t asks;             /* per latency slot */
	uint64_t patience_ns;      /* for each answer          */
	uint32_t latency_again, bandwidth_again; /* most rounds of pairs that are probed again */
	uint64_t latency_again_ns; /* longer: perhaps they are far */
	uint32_t within_rounds, between_rounds; /* once groups are known */
	uint64_t within_slot_ns, between_slot_ns;
	double seconds;            /* longest duration, without grouping */
};

/* At least 2 hosts. */
void probe_timing_make(const struct timing_wish *wish, struct timing *out);

/*
 * How many seconds a host may be late for a meeting: it may have measured all the time, or it groups the
 * others, which takes the longer the more they are.
 */
double probe_timing_patience(const struct timing *timing, uint32_t hosts);

/* The parts of a bandwidth slot: connecting, warming up, counting. */
uint64_t probe_timing_connect_ns(uint64_t slot_ns);
uint64_t probe_timing_warm_ns(uint64_t slot_ns); /* connecting included */

#endif
