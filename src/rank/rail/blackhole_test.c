#include "rank/rail/blackhole.h"

#include "base/check.h"
#include "base/clock.h"
#include "transport/path.h"

int main(void)
{
	struct path_stats stats = {.has_path = true, .unacked = 10, .timeouts = 4, .segment_bytes = 8948, .path_mtu = 9000};

	CHECK(blackhole_is_stuck(&stats) && blackhole_may_be_about_size(&stats));
	stats.timeouts = 3; /* a lossy network, so far */
	CHECK(!blackhole_is_stuck(&stats) && !blackhole_may_be_about_size(&stats));
	stats.timeouts = 9;
	stats.segment_bytes = 536; /* stuck, but not for its size */
	CHECK(blackhole_is_stuck(&stats) && !blackhole_may_be_about_size(&stats));
	stats.unacked = 0; /* all has arrived: the other end is slow to read */
	CHECK(!blackhole_is_stuck(&stats));
	stats.unacked = 1;
	stats.has_path = false;
	CHECK(!blackhole_is_stuck(&stats));
	/* A large packet: under way, retransmitted, arrived late, lost. */
	stats = (struct path_stats){.has_path = true, .unacked = 1, .segment_bytes = 1448};
	CHECK(blackhole_size_probe(&stats) == SIZE_PROBE_UNDER_WAY);
	stats.timeouts = 3;
	CHECK(blackhole_size_probe(&stats) == SIZE_PROBE_UNDER_WAY);
	stats.unacked = 0;
	CHECK(blackhole_size_probe(&stats) == SIZE_PROBE_ARRIVED);
	stats.unacked = 1;
	stats.timeouts = 4;
	CHECK(blackhole_size_probe(&stats) == SIZE_PROBE_LOST);
	/* A silent rank is considered dead before the warning. */
	CHECK(!blackhole_has_lasted(5 * NS_PER_S, 5 * NS_PER_S, 10000) &&
	      !blackhole_has_lasted(5 * NS_PER_S, 15 * NS_PER_S - 1, 10000));
	CHECK(blackhole_has_lasted(5 * NS_PER_S, 15 * NS_PER_S, 10000));
	return 0;
}
