#include "network/discover/candidates.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"
#include "network/discover/cluster.h"
#include "network/discover/quality.h"
#include "network/discover/silhouette.h"

#define NODES_MAX 24u

static void make(struct rng *rng, uint32_t nodes, uint32_t racks, double jitter, struct matrix *matrix)
{
	struct error err;

	CHECK(matrix_init(matrix, nodes, &err) == ESP_OK);
	for (uint32_t i = 0; i < nodes; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, (i % racks == j % racks ? 30e-6 : 36e-6) + rng_unit(rng) * jitter);
	}
}

static void check_same(const struct candidates *a, const struct candidates *b)
{
	CHECK_U64(a->count, b->count);
	for (uint32_t i = 0; i < a->count; i++) {
		CHECK(grouping_equal(&a->list[i].grouping, &b->list[i].grouping));
		CHECK(a->list[i].evidence == b->list[i].evidence && a->list[i].silhouette == b->list[i].silhouette);
	}
}

/*
 * Every number of groups is there, no grouping twice, none with groups that are too small, the same for the
 * same seed.
 */
static void test_list(struct rng *rng)
{
	uint32_t sizes[NODES_MAX];
	struct matrix matrix;
	struct error err;

	for (uint32_t nodes = 1; nodes <= NODES_MAX; nodes += nodes < 6 ? 1 : 6) {
		struct candidates_options options = {.seed = nodes, .elasticity = nodes % 2 ? 1 : 2};
		struct candidates one, two;
		uint32_t expected = 1;

		make(rng, nodes, 2, 20e-6, &matrix);
		CHECK(discover_candidates_make(&matrix, &options, &one, &err) == ESP_OK &&
		      discover_candidates_make(&matrix, &options, &two, &err) == ESP_OK);
		check_same(&one, &two);
		for (uint32_t i = 0; i < one.count; i++) {
			const struct candidate *candidate = &one.list[i];

			expected += candidate->grouping.count > expected;
			CHECK_U64(candidate->grouping.count, expected);
			grouping_sizes(&candidate->grouping, sizes);
			for (uint32_t group = 0; group < candidate->grouping.count; group++)
				CHECK(sizes[group] >= discover_cluster_least(nodes, expected, options.elasticity));
			CHECK(candidate->silhouette >= -1 && candidate->silhouette <= 1 && candidate->agreement <= 1 + 1e-9 &&
			      !isnan(candidate->evidence));
			for (uint32_t j = 0; j < i; j++)
				CHECK(!grouping_equal(&one.list[j].grouping, &candidate->grouping));
		}
		CHECK_U64(expected, nodes > 1 ? nodes / 2 : 1);
		CHECK(one.list[0].evidence == 0 && one.list[0].silhouette == 0 && one.list[0].gap == 0);
		discover_candidates_fini(&one);
		discover_candidates_fini(&one);
		discover_candidates_fini(&two);
		matrix_fini(&matrix);
	}
}

/* The choice for clear racks, and for a network without groups. */
static void test_choice(struct rng *rng)
{
	struct candidates_options options = {0};
	struct candidates_choice choice;
	struct candidates candidates;
	struct matrix matrix;
	struct error err;

	for (uint32_t racks = 1; racks <= 4; racks++) {
		make(rng, 16, racks, 1e-6, &matrix);
		matrix_set(&matrix, 3, 4, NAN);
		matrix_set(&matrix, 1, 9, 1e-3);
		CHECK(discover_candidates_make(&matrix, &options, &candidates, &err) == ESP_OK);
		CHECK(discover_candidates_choose(&matrix, &options, &candidates, &choice, &err) == ESP_OK);
		const struct candidate *chosen = &candidates.list[choice.index];
		CHECK_MSG(chosen->grouping.count == racks, "%u groups for %u racks", chosen->grouping.count, racks);
		for (uint32_t i = 0; i < 16; i++)
			CHECK_U64(chosen->grouping.group_of[i], i % racks);
		CHECK_MSG(choice.sure > (racks == 1 ? 0.5 : 0.95) && choice.agreement > 0.99, "sure %g, agreement %g",
		          choice.sure, choice.agreement);
		CHECK(fabs(choice.within - 30.5e-6) < 0.3e-6);
		if (racks == 1)
			CHECK(isnan(choice.across));
		else
			CHECK(fabs(choice.across - 36.5e-6) < 0.3e-6 && fabs(chosen->gap - 6e-6) < 0.6e-6 &&
			      chosen->silhouette > 0.6);
		discover_candidates_fini(&candidates);
		matrix_fini(&matrix);
	}
}

/* Two racks in which two or four pairs share the uplink: with ratios both are far, and the gap is a logarithm. */
static void test_ratios(struct rng *rng)
{
	struct candidates_options options = {.ratios = true};
	struct candidates_choice choice;
	struct candidates candidates;
	struct matrix matrix;
	struct error err;

	CHECK(matrix_init(&matrix, 8, &err) == ESP_OK);
	for (uint32_t i = 0; i < 8; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, (i % 2 == j % 2 ? 1 : (i + j) % 3 == 0 ? 2 : 4) * (8e-9 + 1e-10 * rng_unit(rng)));
	}
	CHECK(discover_candidates_make(&matrix, &options, &candidates, &err) == ESP_OK);
	CHECK(discover_candidates_choose(&matrix, &options, &candidates, &choice, &err) == ESP_OK);
	const struct candidate *chosen = &candidates.list[choice.index];
	CHECK(chosen->grouping.count == 2 && chosen->grouping.group_of[7] == 1 && chosen->grouping.group_of[6] == 0);
	CHECK_MSG(chosen->gap > log(2) && chosen->gap < log(4) + 0.1 && choice.within < 9e-9 && choice.across > 15e-9,
	          "gap %g", chosen->gap);
	matrix_set(&matrix, 0, 2, 0); /* faster than can be measured */
	discover_candidates_fini(&candidates);
	CHECK(discover_candidates_make(&matrix, &options, &candidates, &err) == ESP_OK);
	for (uint32_t i = 0; i < candidates.count; i++)
		CHECK(isfinite(candidates.list[i].evidence));
	discover_candidates_fini(&candidates);
	matrix_fini(&matrix);
}

static const struct candidate *strongest(const struct candidates *candidates)
{
	const struct candidate *best = &candidates->list[0];

	for (uint32_t i = 1; i < candidates->count; i++) {
		CHECK(candidates->list[i].grouping.count >= candidates->list[i - 1].grouping.count);
		best = candidates->list[i].evidence > best->evidence ? &candidates->list[i] : best;
	}
	return best;
}

/*
 * With many nodes some numbers of groups are skipped, 35 among them; the result is as good as with all numbers,
 * but for the luck of seeds.
 */
static void test_steps(struct rng *rng)
{
	struct candidates_options options = {.embed.restarts = 1, .groups_most = 50};
	struct candidates some, all;
	struct grouping truth;
	uint32_t racks[140];
	struct matrix matrix;
	struct error err;

	make(rng, 140, 35, 1e-6, &matrix);
	CHECK(discover_candidates_make(&matrix, &options, &some, &err) == ESP_OK);
	options.every = true;
	CHECK(discover_candidates_make(&matrix, &options, &all, &err) == ESP_OK);
	for (uint32_t i = 0; i < 140; i++)
		racks[i] = i % 35;
	CHECK(grouping_from(&truth, racks, 140, &err) == ESP_OK);
	const struct candidate *best = strongest(&some), *of_all = strongest(&all);
	CHECK_MSG(best->evidence > 0.97 * of_all->evidence && discover_quality_ami(&best->grouping, &truth) > 0.95,
	          "%u groups, evidence %g, AMI %g; of all %u, %g", best->grouping.count, best->evidence,
	          discover_quality_ami(&best->grouping, &truth), of_all->grouping.count, of_all->evidence);
	CHECK(best->grouping.count != 33 && best->grouping.count != 37 && some.count < all.count);
	grouping_fini(&truth);
	discover_candidates_fini(&some);
	discover_candidates_fini(&all);
	matrix_fini(&matrix);
}

static void test_silhouette(void)
{
	static const double line[] = {0, 1, 10, 11};
	struct grouping grouping;
	struct matrix matrix;
	struct error err;

	CHECK(matrix_init(&matrix, 4, &err) == ESP_OK);
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, line[i] - line[j]);
	}
	/* within 1; outside 10.5 for the outer two, 9.5 for the inner two */
	CHECK(grouping_from(&grouping, (uint32_t[]){0, 0, 1, 1}, 4, &err) == ESP_OK);
	CHECK(fabs(discover_silhouette(&matrix, &grouping) - (2 * 9.5 / 10.5 + 2 * 8.5 / 9.5) / 4) < 1e-12);
	CHECK(fabs(discover_silhouette_of_groups(&matrix, &grouping) - discover_silhouette(&matrix, &grouping)) < 1e-12);
	grouping_fini(&grouping);
	/*
	 * 0, 1 and 10 together: within 5.5, 5 and 9.5, on average 20 / 3; outside 11, 10 and 1. The single node, at
	 * 11, is 22 / 3 away from them.
	 */
	CHECK(grouping_from(&grouping, (uint32_t[]){0, 0, 0, 1}, 4, &err) == ESP_OK);
	CHECK(fabs(discover_silhouette_of_groups(&matrix, &grouping) -
	           ((5.5 / 11 + 5.0 / 10 - 8.5 / 9.5) / 3 + 2.0 / 22) / 2) < 1e-12);
	CHECK(fabs(discover_silhouette(&matrix, &grouping) - (5.5 / 11 + 5.0 / 10 - 8.5 / 9.5) / 4) < 1e-12);
	grouping_fini(&grouping);
	CHECK(grouping_from(&grouping, (uint32_t[]){0, 1, 2, 3}, 4, &err) == ESP_OK &&
	      discover_silhouette_of_groups(&matrix, &grouping) == 0);
	grouping_fini(&grouping);
	CHECK(grouping_from(&grouping, (uint32_t[]){0, 1, 0, 1}, 4, &err) == ESP_OK &&
	      discover_silhouette(&matrix, &grouping) < 0);
	grouping_fini(&grouping);
	CHECK(grouping_init(&grouping, 4, &err) == ESP_OK && discover_silhouette(&matrix, &grouping) == 0 &&
	      discover_silhouette_of_groups(&matrix, &grouping) == 0);
	grouping_fini(&grouping);
	matrix_fini(&matrix);
}

static void test_options(void)
{
	struct candidates candidates;
	struct matrix matrix;
	struct error err;

	CHECK(matrix_init(&matrix, 4, &err) == ESP_OK); /* nothing is known: no error, and no evidence */
	CHECK(discover_candidates_make(&matrix, &(struct candidates_options){0}, &candidates, &err) == ESP_OK &&
	      candidates.list[1].evidence <= 0);
	discover_candidates_fini(&candidates);
	CHECK(discover_candidates_make(&matrix, &(struct candidates_options){.elasticity = 3}, &candidates, &err) ==
	      ESP_EINVAL);
	CHECK_STR(err.text, "a balance elasticity of 3: it is from 1 to 2");
	CHECK(discover_candidates_make(&matrix, &(struct candidates_options){.groups_most = 5}, &candidates, &err) ==
	      ESP_EINVAL);
	CHECK(discover_candidates_make(&matrix, &(struct candidates_options){.tries = 2000}, &candidates, &err) ==
	      ESP_EINVAL);
	CHECK(discover_candidates_make(&matrix, &(struct candidates_options){.embed.alpha = 3}, &candidates, &err) ==
	      ESP_EINVAL);
	matrix_set(&matrix, 0, 1, -1);
	CHECK(discover_candidates_make(&matrix, &(struct candidates_options){0}, &candidates, &err) == ESP_EINVAL);
	matrix_fini(&matrix);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_list(&rng);
	test_choice(&rng);
	test_ratios(&rng);
	test_steps(&rng);
	test_silhouette();
	test_options();
	return 0;
}
