/* Time-outs by round trips, and rounds of numbers that are sent again. */
#include "switch/endpoint/patience.h"

#include "base/check.h"

#define MS UINT64_C(1000000)

static uint32_t allowed(struct patience *patience, uint64_t now_ns, uint32_t asked)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < asked; i++)
		count += patience_allows(patience, now_ns);
	return count;
}

static void test_time(void)
{
	struct patience patience;

	patience_init(&patience, 20 * MS, 320 * MS);
	CHECK_U64(patience_rto_ns(&patience), 100 * MS);
	patience_measure(&patience, 8 * MS);
	CHECK_U64(patience_rto_ns(&patience), 28 * MS);
	for (int i = 0; i < 100; i++)
		patience_measure(&patience, 8 * MS);
	CHECK_U64(patience_rto_ns(&patience), 28 * MS);
	CHECK_U64(patience_after_ns(&patience, 1), 28 * MS);
	CHECK_U64(patience_after_ns(&patience, 3), 112 * MS);
	CHECK_U64(patience_after_ns(&patience, 200), 320 * MS);
	patience_measure(&patience, 0);
	for (int i = 0; i < 100; i++)
		patience_measure(&patience, 60 * MS);
	CHECK(patience_rto_ns(&patience) >= 79 * MS && patience_rto_ns(&patience) < 82 * MS);
	/* Hellos have shown that the network is slower by now. */
	patience_expect(&patience, 100 * MS);
	CHECK_U64(patience_rto_ns(&patience), 220 * MS);
	/* Longer than the cap: a round trip is no loss. */
	patience_expect(&patience, 400 * MS);
	CHECK_U64(patience_rto_ns(&patience), 820 * MS);
	CHECK_U64(patience_after_ns(&patience, 9), 820 * MS);
}

/* A network has become slower than the time-out: no number is sent once only, and still the time-out grows beyond. */
static void test_unmeasured(void)
{
	struct patience patience;

	patience_init(&patience, 20 * MS, 320 * MS);
	patience_measure(&patience, MS);
	CHECK_U64(patience_rto_ns(&patience), 21 * MS);
	for (int i = 0; i < 64; i++)
		patience_not_measured(&patience);
	CHECK_U64(patience_rto_ns(&patience), 42 * MS);
	for (int i = 0; i < 10000; i++)
		patience_not_measured(&patience);
	CHECK_U64(patience_rto_ns(&patience), 16 * 21 * MS);
	patience_measure(&patience, MS);
	CHECK_U64(patience_rto_ns(&patience), 21 * MS);
}

static void test_rounds(void)
{
	struct patience patience;

	patience_init(&patience, 20 * MS, 320 * MS);
	patience_measure(&patience, MS);
	patience_result(&patience, MS); /* no round: no credit */
	CHECK_U64(allowed(&patience, 50 * MS, 100), PATIENCE_PROBES);
	CHECK_U64(allowed(&patience, 91 * MS, 100), 0);
	/* Results double what is under way. */
	for (uint32_t i = 0; i < PATIENCE_PROBES; i++)
		patience_result(&patience, 60 * MS);
	CHECK_U64(allowed(&patience, 60 * MS, 100), 2 * PATIENCE_PROBES);
	/* The next round, after twice the time-out. */
	CHECK_U64(allowed(&patience, 92 * MS, 100), PATIENCE_PROBES);
	patience_result(&patience, 200 * MS);
	CHECK_U64(allowed(&patience, 200 * MS, 100), PATIENCE_PROBES);
}

int main(void)
{
	test_time();
	test_unmeasured();
	test_rounds();
	return 0;
}
