#include "network/probe/probe_report.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define HOSTS 5u
#define SELF 2u

static void draw(struct rng *rng, struct report_row *rows)
{
	memset(rows, 0, HOSTS * sizeof(*rows));
	for (uint32_t i = 0; i < HOSTS; i++) {
		struct report_row *row = &rows[i];
		if (i == SELF)
			continue;
		if (rng_chance(rng, 3, 4)) {
			row->rtt_count = 1 + (uint32_t)rng_below(rng, 1000);
			row->rtt_low = 1e-6 + rng_unit(rng);
			row->rtt_median = row->rtt_low * (1 + rng_unit(rng));
		}
		if (rng_chance(rng, 3, 4)) {
			row->rate_count = 1 + (uint32_t)rng_below(rng, 10);
			row->rate_best = rng_unit(rng) * 1e10;
			row->rate_sum = row->rate_best * (1 + rng_unit(rng) * (row->rate_count - 1));
			row->received = rng_below(rng, UINT64_C(1) << 40);
			row->sent = rng_below(rng, UINT64_C(1) << 40);
		}
	}
}

static bool round_trips(const struct report_row *rows)
{
	uint8_t bytes[HOSTS * REPORT_ROW_BYTES], again[HOSTS * REPORT_ROW_BYTES];
	struct report_row back[HOSTS];

	probe_report_encode(rows, HOSTS, bytes);
	if (!probe_report_decode(bytes, HOSTS, SELF, back))
		return false;
	probe_report_encode(back, HOSTS, again);
	return memcmp(bytes, again, sizeof(bytes)) == 0;
}

static void test_round_trip(struct rng *rng)
{
	struct report_row rows[HOSTS];

	for (int i = 0; i < 2000; i++) {
		draw(rng, rows);
		CHECK(round_trips(rows));
	}
}

/* Each of these is one error in a valid row. */
static void test_nonsense(struct rng *rng)
{
	const struct report_row bad[] = {
		{.rtt_low = 1e-6, .rtt_median = 2e-6},                                        /* times without samples */
		{.rtt_count = 1},                                                             /* a sample without a time */
		{.rtt_count = 1, .rtt_low = 0, .rtt_median = 1e-6},                           /* faster than light */
		{.rtt_count = 1, .rtt_low = 2e-6, .rtt_median = 1e-6},
		{.rtt_count = 1, .rtt_low = NAN, .rtt_median = 1e-6},
		{.rtt_count = 1, .rtt_low = 1e-6, .rtt_median = INFINITY},
		{.rtt_count = 1, .rtt_low = -1e-6, .rtt_median = 1e-6},
		{.rtt_count = 1, .rtt_low = 1, .rtt_median = 1000},
		{.rate_count = 2, .rate_sum = 1e9, .rate_best = 2e9},
		{.rate_count = 2, .rate_sum = 1e9},
		{.rate_count = 0, .rate_sum = 1e9, .rate_best = 1e9},
		{.rate_count = 1, .rate_sum = NAN, .rate_best = NAN},
		{.rate_count = 1, .rate_sum = -0.0, .rate_best = 0},
		{.rate_count = 1, .rate_sum = 1e14, .rate_best = 1e14},
		{.rate_count = 1, .rate_sum = 1, .rate_best = 1, .received = UINT64_MAX},
		{.sent = UINT64_MAX},
	};
	struct report_row rows[HOSTS];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		draw(rng, rows);
		rows[4] = bad[i];
		CHECK_MSG(!round_trips(rows), "row %zu is believed", i);
	}
	draw(rng, rows);
	rows[SELF].sent = 1;
	CHECK(!round_trips(rows));
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_round_trip(&rng);
	test_nonsense(&rng);
	return 0;
}
