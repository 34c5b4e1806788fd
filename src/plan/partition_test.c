#include "plan/partition.h"

#include "base/check.h"
#include "base/rng.h"

#define MAX_ITEMS 9
#define MAX_BINS 4

static uint64_t fullest(const uint64_t *sizes, uint64_t count, const uint32_t *bin_of, uint32_t bins)
{
	uint64_t loads[MAX_BINS] = {0};
	uint64_t most = 0;
	for (uint64_t i = 0; i < count; i++) {
		CHECK(bin_of[i] < bins);
		loads[bin_of[i]] += sizes[i];
		if (loads[bin_of[i]] > most)
			most = loads[bin_of[i]];
	}
	return most;
}

/* Tries every placement: the smallest load that the fullest bin can have. */
static uint64_t optimum(const uint64_t *sizes, uint64_t count, uint64_t *loads, uint32_t bins, uint64_t at)
{
	uint64_t best = UINT64_MAX;
	if (at == count) {
		best = 0;
		for (uint32_t bin = 0; bin < bins; bin++)
			best = loads[bin] > best ? loads[bin] : best;
		return best;
	}
	for (uint32_t bin = 0; bin < bins; bin++) {
		loads[bin] += sizes[at];
		uint64_t found = optimum(sizes, count, loads, bins, at + 1);
		best = found < best ? found : best;
		loads[bin] -= sizes[at];
	}
	return best;
}

/* LPT <= (4/3 - 1/(3 m)) OPT, that is 3 m LPT <= (4 m - 1) OPT. */
static void test_bound(struct rng *rng)
{
	for (int round = 0; round < 400; round++) {
		uint64_t sizes[MAX_ITEMS];
		uint32_t bin_of[MAX_ITEMS];
		uint64_t loads[MAX_BINS] = {0};
		uint64_t count = rng_below(rng, 8) + 1;
		uint32_t bins = (uint32_t)rng_below(rng, MAX_BINS) + 1;
		for (uint64_t i = 0; i < count; i++)
			sizes[i] = rng_below(rng, 20);
		memset(bin_of, 0xff, sizeof bin_of);
		CHECK(plan_partition_lpt(sizes, count, NULL, bins, bin_of) == ESP_OK);
		uint64_t lpt = fullest(sizes, count, bin_of, bins);
		uint64_t opt = optimum(sizes, count, loads, bins, 0);
		CHECK_MSG(3 * bins * lpt <= (4 * bins - 1) * opt, "round %d: lpt %" PRIu64 " opt %" PRIu64, round, lpt, opt);
	}
}

/* Graham's worst case for two bins: the bound is met exactly. */
static void test_worst_case(void)
{
	const uint64_t sizes[] = {3, 3, 2, 2, 2};
	uint32_t bin_of[5];
	CHECK(plan_partition_lpt(sizes, 5, NULL, 2, bin_of) == ESP_OK);
	CHECK_U64(fullest(sizes, 5, bin_of, 2), 7);
}

/* The definition itself, with nothing clever. */
static void plain_lpt(const uint64_t *sizes, uint64_t count, const uint64_t *weights, uint32_t bins, uint32_t *out)
{
	uint64_t loads[64] = {0};
	bool placed[256] = {false};
	for (uint64_t step = 0; step < count; step++) {
		uint64_t item = count;
		for (uint64_t i = 0; i < count; i++)
			if (!placed[i] && (item == count || sizes[i] > sizes[item]))
				item = i;
		uint32_t best = bins;
		for (uint32_t bin = 0; bin < bins; bin++)
			if (weights[bin] && (best == bins || (loads[bin] + sizes[item]) * weights[best] <
			                                         (loads[best] + sizes[item]) * weights[bin]))
				best = bin;
		placed[item] = true;
		loads[best] += sizes[item];
		out[item] = best;
	}
}

static void test_against_definition(struct rng *rng)
{
	for (int round = 0; round < 300; round++) {
		uint64_t sizes[256], weights[64];
		uint32_t expected[256], actual[256];
		uint64_t count = rng_below(rng, 256) + 1;
		uint32_t bins = (uint32_t)rng_below(rng, 64) + 1;
		bool equal_weights = rng_chance(rng, 1, 2);
		uint64_t spread = rng_chance(rng, 1, 4) ? 1 : 50;
		for (uint64_t i = 0; i < count; i++)
			sizes[i] = rng_below(rng, spread) + 1;
		for (uint32_t bin = 0; bin < bins; bin++)
			weights[bin] = equal_weights ? 3 : rng_below(rng, 5);
		weights[rng_below(rng, bins)] = 3;
		plain_lpt(sizes, count, weights, bins, expected);
		CHECK(plan_partition_lpt(sizes, count, weights, bins, actual) == ESP_OK);
		CHECK_MSG(memcmp(expected, actual, count * sizeof *actual) == 0, "round %d differs from the definition", round);
		if (equal_weights) {
			CHECK(plan_partition_lpt(sizes, count, NULL, bins, actual) == ESP_OK);
			CHECK_MSG(memcmp(expected, actual, count * sizeof *actual) == 0, "round %d without weights", round);
		}
	}
}

static void test_ties(void)
{
	const uint64_t sizes[] = {5, 5, 5, 5, 5};
	const uint32_t expected[] = {0, 1, 2, 0, 1};
	uint32_t bin_of[5];
	CHECK(plan_partition_lpt(sizes, 5, NULL, 3, bin_of) == ESP_OK);
	CHECK(memcmp(bin_of, expected, sizeof expected) == 0);
}

/* Products of 64-bit loads and weights must not wrap. */
static void test_huge(void)
{
	const uint64_t sizes[] = {UINT64_MAX / 2, UINT64_MAX / 4, 7};
	const uint64_t weights[] = {UINT64_MAX / 3, UINT64_MAX};
	uint32_t bin_of[3];
	CHECK(plan_partition_lpt(sizes, 3, weights, 2, bin_of) == ESP_OK);
	CHECK_U64(bin_of[0], 1);
	CHECK_U64(bin_of[1], 0); /* by one part in 2^63 */
	CHECK_U64(bin_of[2], 1);
}

static void test_refusals(void)
{
	const uint64_t sizes[] = {UINT64_MAX, 1};
	const uint64_t no_weight[] = {0, 0};
	uint32_t bin_of[2] = {77, 77};
	CHECK(plan_partition_lpt(sizes, 1, NULL, 0, bin_of) == ESP_EINVAL);
	CHECK(plan_partition_lpt(sizes, 1, no_weight, 2, bin_of) == ESP_EINVAL);
	CHECK(plan_partition_lpt(sizes, 2, NULL, 2, bin_of) == ESP_ELIMIT);
	CHECK(plan_partition_lpt(NULL, 0, NULL, 2, bin_of) == ESP_OK);
	CHECK(bin_of[0] == 77 && bin_of[1] == 77);
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	test_bound(&rng);
	test_worst_case();
	test_against_definition(&rng);
	test_ties();
	test_huge();
	test_refusals();
	return 0;
}
