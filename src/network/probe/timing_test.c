#include "network/probe/timing.h"

#include "base/check.h"
#include "base/clock.h"

static void check(uint32_t hosts, bool latency, bool bandwidth, double seconds)
{
	const struct timing_wish wish = {hosts, latency, bandwidth, seconds};
	struct timing timing;

	probe_timing_make(&wish, &timing);
	CHECK_U64(timing.rounds, hosts - 1 + hosts % 2);
	CHECK((timing.latency_passes > 0) == latency && (timing.bandwidth_passes > 0) == bandwidth);
	CHECK((timing.latency_again > 0) == latency && (timing.bandwidth_again > 0) == bandwidth);
	if (latency)
		CHECK(timing.asks > 1 && timing.patience_ns > 0 && timing.patience_ns < timing.latency_slot_ns);
	if (bandwidth) {
		uint64_t slot_ns = timing.bandwidth_slot_ns;
		CHECK(probe_timing_connect_ns(slot_ns) < probe_timing_warm_ns(slot_ns) &&
		      2 * probe_timing_warm_ns(slot_ns) < slot_ns + slot_ns / 4);
	}
	CHECK(probe_timing_warm_ns(timing.within_slot_ns) < timing.within_slot_ns &&
	      probe_timing_warm_ns(timing.between_slot_ns) < timing.between_slot_ns);
	CHECK(timing.seconds > 0 && timing.seconds < seconds + 0.2 * hosts + 2);
}

/* The times in the manual. */
static void test_sixteen_hosts(void)
{
	const struct timing_wish wish = {16, true, true, 8};
	struct timing timing;

	probe_timing_make(&wish, &timing);
	CHECK_MSG(timing.seconds <= 8.5, "%f", timing.seconds);
	CHECK(timing.bandwidth_passes >= 2 && timing.latency_passes >= 2);
}

/*
 * Grouping 256 hosts took 6 s of a core; quadratically, 1000 hosts take a hundred. There are slower cores, and
 * busy ones.
 */
static void test_patience(void)
{
	static const struct {
		uint32_t hosts;
		double grouping;
	} known[] = {{16, 0.1}, {256, 6}, {1000, 100}};

	for (unsigned i = 0; i < 3; i++) {
		const struct timing_wish wish = {known[i].hosts, true, false, 3};
		struct timing timing;

		probe_timing_make(&wish, &timing);
		CHECK(probe_timing_patience(&timing, known[i].hosts) > timing.seconds + 4 * known[i].grouping + 30);
	}
}

int main(void)
{
	for (uint32_t hosts = 2; hosts <= 300; hosts++)
		for (uint32_t half = 1; half < 200; half *= 2) {
			check(hosts, true, false, half / 2.0);
			check(hosts, false, true, half / 2.0);
			check(hosts, true, true, half / 2.0);
		}
	test_sixteen_hosts();
	test_patience();
	return 0;
}
