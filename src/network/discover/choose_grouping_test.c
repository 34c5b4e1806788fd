/*
 * choose_grouping_test.c - the chosen grouping on measured networks with a known answer.
 */
#include "network/discover/choose_grouping.h"

#include <string.h>

#include "base/check.h"
#include "base/rng.h"

/* On a measured network, the true grouping is chosen. */
static void groupings(struct rng *rng)
{
	for (int round = 0; round < 20; round++) {
		double bytes[64], latency[64];
		uint32_t truth[8], candidates[6][8], best;
		const uint32_t *list[6];
		struct error err;
		struct tune_network network = {.nodes = 8, .seconds_per_byte = round % 2 ? bytes : NULL,
		                               .latency = round % 2 ? NULL : latency};

		/* Two racks of four in random order; distances between them are about four times as long. */
		uint32_t left = 3, right = 4;
		truth[0] = 0;
		for (uint32_t i = 1; i < 8; i++) {
			truth[i] = rng_below(rng, left + right) < left ? 0 : 1;
			(*(truth[i] == 0 ? &left : &right))--;
		}
		for (uint32_t i = 0; i < 8; i++) {
			for (uint32_t k = 0; k <= i; k++) {
				double noise = 0.9 + 0.2 * (double)rng_below(rng, 1000) / 1000;
				double far = i == k ? 0 : (truth[i] == truth[k] ? 1 : 4) * noise;

				bytes[8 * i + k] = bytes[8 * k + i] = far * 1e-8;
				latency[8 * i + k] = latency[8 * k + i] = far * 1e-5;
			}
		}
		for (uint32_t i = 0; i < 8; i++) {
			candidates[0][i] = 0;
			candidates[1][i] = truth[i];
			candidates[2][i] = i % 2;
			candidates[3][i] = i / 2;
			candidates[4][i] = i / 4;
			candidates[5][i] = i % 4;
		}
		for (uint32_t i = 0; i < 6; i++)
			list[i] = candidates[i];
		CHECK(discover_choose_grouping(&network, list, 6, 100 << 20, &best, NULL, &err) == ESP_OK);
		CHECK_MSG(memcmp(candidates[best], truth, sizeof(truth)) == 0, "%u in round %d", best, round);
	}
}

#define MANY 24u

/* The numbers below MANY in random order. */
static void shuffle(struct rng *rng, uint32_t place[MANY])
{
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t other = (uint32_t)rng_below(rng, i + 1);

		place[i] = i;
		place[i] = place[other];
		place[other] = i;
	}
}

/*
 * Latency only: 24 nodes in two rows of three racks of four, 10 within a rack, 14 within a row, 30 beyond.
 * Racks are chosen; not rows, whose gap is the widest, and not halves of racks, which are near each other in
 * the most pairs. Without structure: the fewest groups.
 */
static void groupings_by_latency(struct rng *rng)
{
	for (int round = 0; round < 20; round++) {
		double latency[MANY * MANY], seconds[6];
		uint32_t place[MANY], candidates[6][MANY], best, again;
		const uint32_t *list[6];
		struct error err;
		struct tune_network network = {.nodes = MANY, .latency = latency};
		bool is_flat = round % 4 == 3;

		shuffle(rng, place);
		for (uint32_t i = 0; i < MANY; i++) {
			for (uint32_t k = 0; k <= i; k++) {
				double far = is_flat || place[i] / 4 == place[k] / 4 ? 10 : place[i] / 12 == place[k] / 12 ? 14 : 30;

				latency[MANY * i + k] = latency[MANY * k + i] = i == k ? 0 : (far + 2 * rng_unit(rng)) * 1e-6;
			}
			candidates[0][i] = place[i] / 12;
			candidates[1][i] = place[i] / 4;
			candidates[2][i] = place[i] / 2;
			candidates[3][i] = place[i] % 6;
			candidates[4][i] = place[i] / 8;
			candidates[5][i] = 0;
		}
		for (uint32_t i = 0; i < 6; i++)
			list[i] = candidates[i];
		CHECK(discover_choose_grouping(&network, list, 6, 100 << 20, &best, NULL, &err) == ESP_OK);
		CHECK_MSG(best == (is_flat ? 5 : 1), "%u in round %d", best, round);
		CHECK(discover_choose_grouping(&network, list, 6, 100 << 20, &again, seconds, &err) == ESP_OK &&
		      again == best && seconds[best] > 0);
	}
}

#define SPLITS 30u

/* Random halves of racks. */
static void split_racks(struct rng *rng, const uint32_t *place, uint32_t *out)
{
	uint32_t taken[MANY / 6] = {0}, left[MANY / 6];

	for (uint32_t rack = 0; rack < MANY / 6; rack++)
		left[rack] = 6;
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t rack = place[i] / 6;
		bool is_first = rng_below(rng, left[rack]--) < 3 - taken[rack];

		taken[rack] += is_first;
		out[i] = 2 * rack + is_first;
	}
}

/*
 * Bandwidths: four racks of six, distances between them three times as long, with noise, and one pair in fifty
 * is wrong. Among many ways to halve the racks there is one whose wrong pairs are all between its groups, where
 * few bytes pass: the racks are chosen all the same, and one group if there are none.
 */
static void groupings_by_bandwidth(struct rng *rng)
{
	for (int round = 0; round < 40; round++) {
		double bytes[MANY * MANY];
		uint32_t place[MANY], candidates[SPLITS + 2][MANY], best;
		const uint32_t *list[SPLITS + 2];
		struct error err;
		struct tune_network network = {.nodes = MANY, .seconds_per_byte = bytes};
		bool is_flat = round % 4 == 3;

		shuffle(rng, place);
		for (uint32_t i = 0; i < MANY; i++) {
			for (uint32_t k = 0; k <= i; k++) {
				double far = is_flat || place[i] / 6 == place[k] / 6 ? 1 : 3;
				double wrong = rng_below(rng, 50) == 0 ? 3 : 1;

				bytes[MANY * i + k] = bytes[MANY * k + i] = i == k ? 0 : far * wrong * (0.7 + 0.6 * rng_unit(rng)) *
				    1e-9;
			}
			candidates[0][i] = place[i] / 6;
			candidates[1][i] = 0;
		}
		for (uint32_t i = 0; i < SPLITS; i++)
			split_racks(rng, place, candidates[i + 2]);
		for (uint32_t i = 0; i < SPLITS + 2; i++)
			list[i] = candidates[i];
		CHECK(discover_choose_grouping(&network, list, SPLITS + 2, 100 << 20, &best, NULL, &err) == ESP_OK);
		CHECK_MSG(best == (is_flat ? 1 : 0), "%u in round %d", best, round);
	}
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 11);
	groupings(&rng);
	groupings_by_latency(&rng);
	groupings_by_bandwidth(&rng);
	return 0;
}
