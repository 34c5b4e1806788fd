#include "tools/diagnose/align.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

#define HOSTS_MOST 5u
#define RANKS_MOST 8u
#define CALLS 400u

/* A clock with an offset and a drift: its reading at a moment of true time. */
struct drifting {
	int64_t offset_ns;
	double rate;
};

static int64_t shows(const struct drifting *clock, int64_t at_ns)
{
	return at_ns + clock->offset_ns + (int64_t)((double)at_ns * clock->rate);
}

static int64_t distance(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

static void test(uint64_t seed)
{
	static struct align_meeting meetings[CALLS * RANKS_MOST];
	struct drifting clocks[HOSTS_MOST];
	struct align_host hosts[HOSTS_MOST];
	struct rng rng;
	rng_init(&rng, seed);
	uint32_t host_of[RANKS_MOST], host_count = 1 + (uint32_t)rng_below(&rng, HOSTS_MOST), ranks = RANKS_MOST;
	size_t count = 0;
	/* seconds to a quarter of an hour in all */
	int64_t now = 0, step = (int64_t)rng_below(&rng, 2000) * 1000000 + 1000;
	for (uint32_t i = 0; i < host_count; i++)
		clocks[i] = (struct drifting){(int64_t)rng_below(&rng, UINT64_C(1) << 50),
		                              i == 0 ? 0 : (rng_unit(&rng) - 0.5) * 40e-6};
	for (uint32_t i = 0; i < ranks; i++)
		host_of[i] = i < host_count ? i : (uint32_t)rng_below(&rng, host_count);
	for (uint32_t call = 0; call < CALLS; call++) {
		int64_t begin[RANKS_MOST], latest = 0;
		bool is_partial = rng_chance(&rng, 1, 4); /* of a communicator without some ranks */
		for (uint32_t i = 0; i < ranks; i++) {
			begin[i] = now + (int64_t)rng_below(&rng, 300000);
			latest = begin[i] > latest ? begin[i] : latest;
		}
		for (uint32_t i = 0; i < ranks; i++) {
			if (is_partial && i % 3 == call % 3)
				continue;
			meetings[count++] = (struct align_meeting){call, host_of[i], shows(&clocks[host_of[i]], begin[i]),
			                                           shows(&clocks[host_of[i]],
			                                                 latest + 5000 + (int64_t)rng_below(&rng, 20000))};
		}
		now += step;
	}
	for (size_t i = count; i > 1; i--) { /* shuffled, as files come in any order */
		size_t other = rng_below(&rng, i);
		struct align_meeting one = meetings[i - 1];
		meetings[i - 1] = meetings[other];
		meetings[other] = one;
	}
	CHECK(diagnose_align_hosts(meetings, count, host_count, hosts) == ESP_OK);
	for (uint32_t i = 0; i < host_count; i++) {
		CHECK(hosts[i].is_known);
		for (int k = 0; k < 20; k++) {
			int64_t at = (int64_t)rng_below(&rng, (uint64_t)now), seen = shows(&clocks[i], at);
			int64_t truth = shows(&clocks[0], at), got = seen + diagnose_align_at(&hosts[i], seen);
			/*
			 * Within the reported error; before the first and after the last window the clocks drift, for a
			 * window's length at most.
			 */
			bool is_between = seen >= hosts[i].at_ns[0] && hosts[i].count > 0 &&
			                  seen <= hosts[i].at_ns[hosts[i].count - 1];
			int64_t window = now / 64 > INT64_C(1000000000) ? now / 64 : INT64_C(1000000000);
			int64_t allowed = hosts[i].error_ns + (is_between ? 1000 : (int64_t)(40e-6 * (double)window));
			CHECK_MSG(distance(got, truth) <= allowed, "seed %" PRIu64 ": host %u is off by %" PRId64 " ns, and says %"
			          PRId64, seed, i, distance(got, truth), hosts[i].error_ns);
		}
		CHECK_MSG(hosts[i].error_ns < 1000000, "seed %" PRIu64 ": %" PRId64 " ns", seed, hosts[i].error_ns);
	}
}

/* Host 2 shares a call with host 1 only, host 3 with none. */
static void test_by_way_of(void)
{
	struct align_meeting meetings[] = {{1, 0, 100, 200}, {1, 1, 1100, 1200}, {2, 1, 1300, 1400}, {2, 2, 301300, 301400},
	                                   {3, 3, 0, 1}};
	struct align_host hosts[4];
	CHECK(diagnose_align_hosts(meetings, 5, 4, hosts) == ESP_OK);
	CHECK(hosts[0].is_known && hosts[1].is_known && hosts[2].is_known && !hosts[3].is_known);
	CHECK(diagnose_align_at(&hosts[0], 5) == 0 && diagnose_align_at(&hosts[1], 5) == -1000 &&
	      diagnose_align_at(&hosts[2], 5) == -301000);
	CHECK(diagnose_align_at(&hosts[3], 5) == 0);
	CHECK(diagnose_align_hosts(NULL, 0, 1, hosts) == ESP_OK && hosts[0].is_known);
}

/*
 * A barrier of 100 us every five seconds, and calls of half a second in between: windows without a barrier
 * profit by it.
 */
static void test_long_calls(void)
{
	static const struct drifting clock = {INT64_C(7000000000), 30e-6};
	struct align_meeting meetings[2 * CALLS];
	struct align_host hosts[2];
	size_t count = 0;
	int64_t now = 0;
	for (uint32_t call = 0; call < 60; call++) {
		int64_t length = call % 10 == 0 ? 100000 : 500000000;
		meetings[count++] = (struct align_meeting){call, 0, now, now + length};
		meetings[count++] = (struct align_meeting){call, 1, shows(&clock, now),
		                                           shows(&clock, now + (call % 2 ? length : length / 2))};
		now += length;
	}
	CHECK(diagnose_align_hosts(meetings, count, 2, hosts) == ESP_OK);
	CHECK_MSG(hosts[1].error_ns < 1000000, "%" PRId64 " ns", hosts[1].error_ns);
	for (int64_t at = 0; at < now; at += 100000000) {
		int64_t seen = shows(&clock, at);
		CHECK(distance(seen + diagnose_align_at(&hosts[1], seen), at) < 1000000);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 100);
	for (uint64_t i = 0; i < count; i++)
		test(seed + i);
	test_by_way_of();
	test_long_calls();
	return 0;
}
