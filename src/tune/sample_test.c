#include "tune/sample.h"

#include "base/check.h"

static void test_sums(void)
{
	struct tune_node nodes[3] = {
		{.sent_bytes = 10, .send_rate = 5, .receive_rate = 7, .time_ns = 300},
		{.sent_bytes = 20, .send_rate = 9, .time_ns = 100},
		{.sent_bytes = 30},
	};
	struct tune_sample sample = {.nodes = 3, .at = nodes};

	CHECK_U64(tune_sample_bytes(&sample), 60);
	CHECK_U64(tune_sample_time(&sample), 100); /* the one without is no zero */
	CHECK_U64(tune_node_rate(&sample, 0), 5);
	CHECK_U64(tune_node_rate(&sample, 1), 9);
	CHECK_U64(tune_node_rate(&sample, 2), 0);
	nodes[1].sent_bytes = 100; /* idle for a quarter of the time */
	nodes[1].send_busy = 100 * 750;
	CHECK_U64(tune_node_rate(&sample, 1), 12);
	nodes[1].send_busy = 100 * 10;
	CHECK_U64(tune_node_rate(&sample, 1), 18);
	sample.is_chain = true;
	CHECK_U64(tune_node_rate(&sample, 0), 7);
}

static void test_level(void)
{
	uint64_t rates[8] = {100, 110, 90, 95, 105, 40, 0, 160}, scratch[8];
	uint64_t none[2] = {0, 0};

	CHECK_U64(tune_level(rates, 8, scratch), 100);
	for (unsigned i = 0; i < 5; i++)
		CHECK_U64(rates[i], 1000); /* scatter */
	CHECK_U64(rates[5], 400);
	CHECK_U64(rates[6], 1000); /* unknown */
	CHECK_U64(rates[7], 1600);
	CHECK_U64(tune_level(none, 2, scratch), 0);
	CHECK_U64(none[0], 1000);
}

/* A rate a little lower never weighs more, and weights have no step. */
static void test_slope(void)
{
	uint64_t before = 0;

	for (uint64_t rate = 1; rate < 3000; rate++) {
		uint64_t rates[3] = {1000, 1000, rate}, scratch[3];

		(void)tune_level(rates, 3, scratch);
		CHECK(rates[2] >= before && rates[2] <= before + 4 && rates[2] > 0);
		before = rates[2];
	}
}

int main(void)
{
	test_sums();
	test_level();
	test_slope();
	return 0;
}
