#include "base/rng.h"

#include "base/check.h"

/* The first numbers of xoshiro256** from its authors' code, seeded by splitmix64(0): the sequence is for ever. */
static void test_sequence(void)
{
	uint64_t state = 0;
	CHECK_U64(rng_splitmix(&state), UINT64_C(0xe220a8397b1dcdaf));
	CHECK_U64(rng_splitmix(&state), UINT64_C(0x6e789e6aa1b965f4));

	struct rng known = {{1, 2, 3, 4}};
	CHECK_U64(rng_next(&known), 11520);
	CHECK_U64(rng_next(&known), 0);
	CHECK_U64(rng_next(&known), 1509978240);
	CHECK_U64(rng_next(&known), UINT64_C(1215971899390074240));
}

static void test_below(void)
{
	struct rng rng;
	uint64_t seen[6] = {0};
	rng_init(&rng, 7);
	for (int i = 0; i < 60000; i++)
		seen[rng_below(&rng, 6)]++;
	for (int i = 0; i < 6; i++)
		CHECK_MSG(seen[i] > 9500 && seen[i] < 10500, "%d came up %" PRIu64 " times of 60000", i, seen[i]);
	CHECK_U64(rng_below(&rng, 1), 0);
}

/* Two thirds of 2^64: a plain remainder would give the lower half of the range twice as often. */
static void test_below_unbiased(void)
{
	struct rng rng;
	uint64_t n = UINT64_MAX / 3 * 2, low = 0;
	rng_init(&rng, 8);
	for (int i = 0; i < 30000; i++)
		low += rng_below(&rng, n) < n / 2;
	CHECK_MSG(low > 14500 && low < 15500, "%" PRIu64 " of 30000 in the lower half", low);
}

static void test_unit(void)
{
	struct rng rng;
	double sum = 0;
	rng_init(&rng, 9);
	for (int i = 0; i < 10000; i++) {
		double x = rng_unit(&rng);
		CHECK(x >= 0 && x < 1);
		sum += x;
	}
	CHECK(sum > 4800 && sum < 5200);
	CHECK(!rng_chance(&rng, 0, 5));
	CHECK(rng_chance(&rng, 5, 5));
}

int main(void)
{
	test_sequence();
	test_below();
	test_below_unbiased();
	test_unit();
	return 0;
}
