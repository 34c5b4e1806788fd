/*
 * quick_test.c - Quicktune beside the best of all tables, which are tried one by one.
 *
 *     quick_test [--seed N]
 */
#include "tune/quick.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES 6u
#define SLOTS 4u

static double longest(const struct plan_masters *masters, const uint64_t *rates, enum tune_count count)
{
	double most = 0;

	for (uint32_t i = 0; i < masters->workers; i++)
		most = fmax(most, (double)tune_quick_load(masters, i, count) / (double)rates[i]);
	return most;
}

/* All choices of everything from `at` on: first the global groups of the slots, then masters group by group. */
static double best_from(struct plan_masters *masters, const uint64_t *rates, enum tune_count count, uint32_t at)
{
	uint32_t slots = masters->slots, all = slots * (1 + masters->groups);
	double best = INFINITY;

	CHECK(slots > 0);

	if (at == all)
		return longest(masters, rates, count);
	for (uint32_t choice = 0; choice < (at < slots ? masters->groups : masters->workers); choice++) {
		if (at < slots)
			masters->global_group[at] = choice;
		else if (masters->group_of[choice] == at / slots - 1)
			masters->local_master[at - slots] = choice;
		else
			continue;
		best = fmin(best, best_from(masters, rates, count, at + 1));
	}
	return best;
}

struct ratios {
	double sum, most;
	uint32_t count;
};

static void compare(struct rng *rng, enum tune_count count, struct ratios *ratios)
{
	static const uint32_t layouts[][NODES] = {{0, 0, 1, 1}, {0, 0, 0, 1}, {0, 0, 1, 1, 1}, {0, 1, 2}, {0, 0, 1, 2}};
	static const uint32_t sizes[] = {4, 4, 5, 3, 4};
	uint32_t which = (uint32_t)rng_below(rng, 5), workers = sizes[which];
	uint32_t slots = 1 + (uint32_t)rng_below(rng, workers == 5 ? 3 : SLOTS);
	uint64_t rates[NODES] = {0};
	struct plan_masters masters, tried = {0};
	struct error err;

	for (uint32_t i = 0; i < workers; i++) /* as the lab has it: most alike, some slow, or all drawn */
		rates[i] = rng_chance(rng, 1, 2) ? 1000 : 200 + rng_below(rng, 1800);
	CHECK(plan_masters_init(&masters, layouts[which], workers, slots, &err) == ESP_OK);
	CHECK(plan_masters_copy(&tried, &masters) == ESP_OK);
	double best = best_from(&tried, rates, count, 0);
	CHECK(tune_quick(&masters, rates, NULL, count) == ESP_OK);
	CHECK(plan_masters_fit(&masters, layouts[which], workers, masters.groups));
	double ratio = longest(&masters, rates, count) / best;
	CHECK_MSG(ratio >= 1 - 1e-12, "better than the best: %g", ratio);
	ratios->sum += ratio;
	ratios->most = fmax(ratios->most, ratio);
	ratios->count++;
	plan_masters_fini(&tried);
	plan_masters_fini(&masters);
}

/* Two racks of four, one host at 40 %: it keeps no master, the others share what it had. */
static void test_slow_host(void)
{
	uint32_t group_of[8] = {0, 0, 0, 0, 1, 1, 1, 1};
	uint64_t rates[8] = {1000, 1000, 400, 1000, 1000, 1000, 1000, 1000};
	struct plan_masters masters;
	struct error err;

	CHECK(plan_masters_init(&masters, group_of, 8, 0, &err) == ESP_OK);
	CHECK(tune_quick(&masters, rates, NULL, TUNE_COUNT_ALL) == ESP_OK);
	CHECK_U64(plan_masters_load(&masters, 2), masters.slots);
	for (uint32_t i = 0; i < 4; i++)
		CHECK(i == 2 || plan_masters_load(&masters, i) <= 64 + 22 * 3);
	for (uint32_t i = 4; i < 8; i++)
		CHECK_U64(plan_masters_load(&masters, i), 48 + 16 * 4);
	/* And back. */
	rates[2] = 1000;
	CHECK(tune_quick(&masters, rates, NULL, TUNE_COUNT_ALL) == ESP_OK);
	for (uint32_t i = 0; i < 8; i++)
		CHECK_U64(plan_masters_load(&masters, i), 48 + 16 * 4);
	rates[1] = 0;
	CHECK(tune_quick(&masters, rates, NULL, TUNE_COUNT_ALL) == ESP_EINVAL);
	plan_masters_fini(&masters);
}

/* Global masters follow what groups carry to each other. */
static void test_groups(void)
{
	uint32_t group_of[6] = {0, 0, 1, 1, 2, 2}, count[3] = {0};
	uint64_t rates[6] = {10, 10, 10, 10, 10, 10}, cross[6] = {20, 20, 10, 10, 10, 10};
	struct plan_masters masters;
	struct error err;

	CHECK(plan_masters_init(&masters, group_of, 6, 40, &err) == ESP_OK);
	CHECK(tune_quick(&masters, rates, cross, TUNE_COUNT_ALL) == ESP_OK);
	for (uint32_t s = 0; s < 40; s++)
		count[masters.global_group[s]]++;
	CHECK(count[0] == 20 && count[1] == 10 && count[2] == 10);
	plan_masters_fini(&masters);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct ratios all = {0}, paper = {0};
	struct rng rng;

	test_slow_host();
	test_groups();
	for (uint64_t i = 0; i < 400; i++) {
		rng_init(&rng, seed + i);
		compare(&rng, TUNE_COUNT_ALL, &all);
		compare(&rng, TUNE_COUNT_MASTERS, &paper);
	}
	printf("times the best, over %u cases: all bytes %.3f on the average, %.3f at the most; the paper's count %.3f and "
	       "%.3f\n",
	       all.count, all.sum / all.count, all.most, paper.sum / paper.count, paper.most);
	CHECK(all.sum / all.count < 1.10 && all.most < 2);
	CHECK(paper.sum / paper.count < 1.25 && paper.most < 3);
	return 0;
}
