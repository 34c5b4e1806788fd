#include "network/probe/timing.h"

#include "base/clock.h"

/*
 * Shares of the time. A latency is known after some dozen packets, a bandwidth only after TCP has reached it:
 * so most of the time goes there. The rest is for pairs to be probed again, the last rounds and the meetings.
 */
#define LATENCY_SHARE 0.15
#define BANDWIDTH_SHARE 0.53
#define ALONE_SHARE 0.65 /* if only one kind is measured */
#define WITHIN_SHARE 0.04
#define BETWEEN_SHARE 0.16
#define AGAIN_SHARE 0.08

#define LATENCY_SLOT_LEAST (12 * NS_PER_MS)
#define LATENCY_SLOT_MOST (60 * NS_PER_MS)
#define LATENCY_PASSES_MOST 8u
#define LATENCY_AGAIN (250 * NS_PER_MS)
#define BANDWIDTH_SLOT_LEAST (70 * NS_PER_MS)
#define BANDWIDTH_SLOT_MOST (500 * NS_PER_MS)
#define BANDWIDTH_SLOT_WANTED (130 * NS_PER_MS)
#define BANDWIDTH_PASSES_MOST 6u
#define WITHIN_SLOT_LEAST (120 * NS_PER_MS)
#define BETWEEN_SLOT_LEAST (250 * NS_PER_MS) /* many flows have to share a path, and lose packets until they do */
#define FINAL_SLOT_MOST (1000 * NS_PER_MS)
#define WITHIN_ROUNDS 2u
#define BETWEEN_ROUNDS 3u
#define ASKS 40u
#define PATIENCE_S 60.0   /* for a meeting, beyond the work before it: for a host that is busy otherwise */
#define GROUPING_S 5e-4   /* for each pair, both ways: five times the measured time of a core */

static uint64_t clamp(double ns, uint64_t least, uint64_t most)
{
	if (ns < (double)least)
		return least;
	return ns > (double)most ? most : (uint64_t)ns;
}

static uint32_t passes(double budget_ns, uint32_t rounds, uint64_t slot_ns, uint32_t most)
{
	return (uint32_t)clamp(budget_ns / ((double)rounds * (double)slot_ns), 1, most);
}

static void plan_latency(struct timing *timing, double budget_ns)
{
	timing->latency_passes = passes(budget_ns, timing->rounds, 2 * LATENCY_SLOT_LEAST, LATENCY_PASSES_MOST);
	timing->latency_slot_ns = clamp(budget_ns / ((double)timing->rounds * timing->latency_passes), LATENCY_SLOT_LEAST,
	                                LATENCY_SLOT_MOST);
	timing->asks = ASKS;
	timing->patience_ns = timing->latency_slot_ns / 2;
	timing->latency_again_ns = LATENCY_AGAIN;
}

static void plan_bandwidth(struct timing *timing, double budget_ns)
{
	timing->bandwidth_passes = passes(budget_ns, timing->rounds, BANDWIDTH_SLOT_WANTED, BANDWIDTH_PASSES_MOST);
	timing->bandwidth_slot_ns =
		clamp(budget_ns / ((double)timing->rounds * timing->bandwidth_passes), BANDWIDTH_SLOT_LEAST,
		      BANDWIDTH_SLOT_MOST);
}

void probe_timing_make(const struct timing_wish *wish, struct timing *out)
{
	double ns = wish->seconds * (double)NS_PER_S;
	bool both = wish->latency && wish->bandwidth;

	*out = (struct timing){.rounds = wish->hosts - 1 + wish->hosts % 2, .within_rounds = WITHIN_ROUNDS,
	                       .between_rounds = BETWEEN_ROUNDS};
	if (wish->latency)
		plan_latency(out, ns * (both ? LATENCY_SHARE : ALONE_SHARE));
	if (wish->bandwidth)
		plan_bandwidth(out, ns * (both ? BANDWIDTH_SHARE : ALONE_SHARE));
	out->within_slot_ns = clamp(ns * WITHIN_SHARE / WITHIN_ROUNDS, WITHIN_SLOT_LEAST, FINAL_SLOT_MOST);
	out->between_slot_ns = clamp(ns * BETWEEN_SHARE / BETWEEN_ROUNDS, BETWEEN_SLOT_LEAST, FINAL_SLOT_MOST);
	double again = ns * AGAIN_SHARE / (both ? 2 : 1);
	if (wish->latency)
		out->latency_again = (uint32_t)clamp(again / (double)out->latency_again_ns, 1, 64);
	if (wish->bandwidth)
		out->bandwidth_again = (uint32_t)clamp(again / (double)out->bandwidth_slot_ns, 1, 64);
	out->seconds = 1e-9 * ((double)out->rounds * out->latency_passes * (double)out->latency_slot_ns +
	                       (double)out->rounds * out->bandwidth_passes * (double)out->bandwidth_slot_ns +
	                       (double)out->latency_again * (double)out->latency_again_ns +
	                       (double)out->bandwidth_again * (double)out->bandwidth_slot_ns +
	                       (double)WITHIN_ROUNDS * (double)out->within_slot_ns + (double)BETWEEN_ROUNDS *
	                       (double)out->between_slot_ns);
}

double probe_timing_patience(const struct timing *timing, uint32_t hosts)
{
	return PATIENCE_S + timing->seconds + GROUPING_S * hosts * hosts;
}

/* One or two round trips, of packets that may queue behind the rest of the previous round. */
uint64_t probe_timing_connect_ns(uint64_t slot_ns)
{
	uint64_t part = slot_ns / 6;

	return part < 15 * NS_PER_MS ? 15 * NS_PER_MS : part;
}

uint64_t probe_timing_warm_ns(uint64_t slot_ns)
{
	uint64_t connect_ns = probe_timing_connect_ns(slot_ns);

	return connect_ns + (slot_ns - connect_ns) / 3;
}
