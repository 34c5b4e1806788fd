#include "rank/rail/failover.h"

#include "base/check.h"
#include "base/rng.h"

/* good: the number of good rails. */
static void expect(const uint32_t *weights, uint32_t rails, uint32_t bad, uint32_t preferred, const char *expected,
                   uint32_t good)
{
	uint8_t order[RAILS_MOST];
	char text[RAILS_MOST + 1] = "";

	CHECK_U64(failover_order(weights, rails, bad, preferred, order), good);
	for (uint32_t i = 0; i < rails; i++)
		text[i] = (char)('0' + order[i]);
	CHECK_STR(text, expected);
}

static void examples(void)
{
	static const uint32_t weights[] = {20, 64, 0, 40};

	expect(weights, 2, 0, 0, "01", 2);
	expect(weights, 2, 0, 1, "10", 2);
	expect(weights, 2, 1, 0, "10", 1);
	expect(weights, 2, 3, 0, "01", 0); /* none is good: the usual order */
	expect(weights, 4, 0, 0, "0132", 3);
	expect(weights, 4, 1, 0, "1302", 2);
	expect(weights, 4, 2, 1, "3012", 2);
	expect(weights, 4, 0, 2, "1302", 3); /* the preferred rail was never used */
}

/* All rails come once each, and no bad one before a good one. */
static void properties(struct rng *rng)
{
	for (int i = 0; i < 10000; i++) {
		uint32_t weights[RAILS_MOST], rails = 1 + (uint32_t)rng_below(rng, RAILS_MOST),
									  bad = (uint32_t)rng_below(rng, 256), seen = 0;
		uint8_t order[RAILS_MOST];
		bool bad_before = false;
		uint32_t good = 0;

		for (uint32_t k = 0; k < rails; k++)
			weights[k] = (uint32_t)rng_below(rng, 4);
		uint32_t told = failover_order(weights, rails, bad, (uint32_t)rng_below(rng, rails), order);
		for (uint32_t k = 0; k < rails; k++) {
			bool is_bad = bad >> order[k] & 1 || weights[order[k]] == 0;

			seen |= 1u << order[k];
			CHECK(!bad_before || is_bad);
			bad_before = is_bad;
			good += !is_bad;
		}
		CHECK_U64(told, good);
		CHECK_U64(seen, (1u << rails) - 1);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	examples();
	properties(&rng);
	return 0;
}
