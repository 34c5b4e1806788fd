/*
 * Racks in matrices as probes make them: near within racks, further between them, and disturbed towards longer
 * distances.
 */
#include "network/discover/judge_groups.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define HOSTS_MOST 132u

static void shuffle(uint32_t *list, uint32_t count, struct rng *rng)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = (uint32_t)rng_below(rng, i), kept = list[i - 1];
		list[i - 1] = list[j];
		list[j] = kept;
	}
}

struct network {
	uint32_t racks, hosts; /* per rack */
	double near, far;      /* distances */
	double noise;          /* relative */
	uint32_t disturbed;    /* of 100 pairs across racks: hundreds of times as far */
	uint32_t unknown;      /* of 100 pairs */
};

static void measure(const struct network *network, const uint32_t *rack_of, struct rng *rng, struct matrix *out)
{
	struct error err;
	uint32_t n = network->racks * network->hosts;

	CHECK(matrix_init(out, n, &err) == ESP_OK);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			bool same = rack_of[i] == rack_of[j];
			double distance = (same ? network->near : network->far) * (1 + network->noise * rng_unit(rng));
			if (!same && rng_chance(rng, network->disturbed, 100))
				distance *= 10 + 500 * rng_unit(rng);
			if (!rng_chance(rng, network->unknown, 100))
				matrix_set(out, i, j, distance);
		}
}

static void make_survey(const struct network *network, enum survey_kind kind, struct rng *rng, struct survey *out,
                        struct grouping *truth)
{
	static char names[HOSTS_MOST][12];
	const char *list[HOSTS_MOST];
	uint32_t rack_of[HOSTS_MOST], n = network->racks * network->hosts;
	struct error err;

	for (uint32_t i = 0; i < n; i++) {
		rack_of[i] = i / network->hosts;
		snprintf(names[i], sizeof(names[i]), "h%u", i);
		list[i] = names[i];
	}
	shuffle(rack_of, n, rng);
	CHECK(survey_init(out, list, n, &err) == ESP_OK && grouping_from(truth, rack_of, n, &err) == ESP_OK);
	measure(network, rack_of, rng, &out->matrices[kind]);
}

static void check_found(const struct network *network, enum survey_kind kind, uint64_t seed)
{
	const struct verdict_wish wish = {.seed = seed};
	struct grouping truth;
	struct verdict verdict;
	struct survey survey;
	struct error err = {0};
	struct rng rng;

	rng_init(&rng, seed);
	make_survey(network, kind, &rng, &survey, &truth);
	CHECK_MSG(discover_verdict_make(&survey, &wish, &verdict, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(grouping_equal(&verdict.grouping, &truth), "seed %" PRIu64 ": %u racks of %u, by %s: %u groups", seed,
	          network->racks, network->hosts, survey_kind_name(kind), verdict.grouping.count);
	CHECK(verdict.kind == kind && (verdict.word != VERDICT_NONE) == (network->racks > 1));
	for (uint32_t i = 0; i < survey.count && network->racks > 1; i++)
		CHECK(verdict.belonging[i] > 0 && verdict.belonging[i] <= 1);
	discover_verdict_fini(&verdict);
	survey_fini(&survey);
	grouping_fini(&truth);
}

static void test_racks(uint64_t seed)
{
	static const struct network networks[] = {
		{2, 4, 4e-6, 10e-6, 0.03, 0, 0},  {4, 4, 4e-6, 10e-6, 0.03, 0, 0},  {4, 4, 4e-6, 10e-6, 0.05, 25, 0},
		{3, 5, 20e-6, 30e-6, 0.05, 0, 3}, {4, 8, 1e-8, 4e-8, 0.8, 5, 2},    {1, 8, 1e-5, 1e-5, 0.02, 0, 0},
	};

	for (uint32_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
		for (uint32_t kind = 0; kind < SURVEY_KINDS; kind++)
			check_found(&networks[i], (enum survey_kind)kind, seed + i);
}

/* Clear but useless: a difference of a hundredth. */
static void test_nearly_alike(void)
{
	const struct network network = {2, 8, 1e-5, 1.01e-5, 0.0001, 0, 0};
	const struct verdict_wish wish = {.seed = 1}, told = {.seed = 1, .groups = 2}, too_many = {.seed = 1, .groups = 17};
	struct grouping truth;
	struct verdict verdict;
	struct survey survey;
	struct error err = {0};
	struct rng rng;

	rng_init(&rng, 1);
	make_survey(&network, SURVEY_LATENCY, &rng, &survey, &truth);
	CHECK(discover_verdict_make(&survey, &wish, &verdict, &err) == ESP_OK);
	CHECK(verdict.word == VERDICT_NONE && verdict.grouping.count == 1);
	discover_verdict_fini(&verdict);
	CHECK(discover_verdict_make(&survey, &told, &verdict, &err) == ESP_OK);
	CHECK(verdict.word == VERDICT_TOLD && grouping_equal(&verdict.grouping, &truth));
	discover_verdict_fini(&verdict);
	CHECK(discover_verdict_make(&survey, &too_many, &verdict, &err) == ESP_EINVAL);
	survey_fini(&survey);
	grouping_fini(&truth);
}

/* The given number of groups, also if not every number is tried. */
static void test_told(void)
{
	const struct network network = {66, 2, 4e-6, 10e-6, 0.03, 0, 0};
	const struct verdict_wish told = {.seed = 1, .groups = 66};
	struct grouping truth;
	struct verdict verdict;
	struct survey survey;
	struct error err = {0};
	struct rng rng;

	rng_init(&rng, 1);
	make_survey(&network, SURVEY_LATENCY, &rng, &survey, &truth);
	CHECK_MSG(discover_verdict_make(&survey, &told, &verdict, &err) == ESP_OK, "%s", err.text);
	CHECK(verdict.word == VERDICT_TOLD && verdict.grouping.count == 66);
	discover_verdict_fini(&verdict);
	survey_fini(&survey);
	grouping_fini(&truth);
}

/* ---- cases from labs ---- */

#define LAB_RACKS 4u
#define LAB_HOSTS 16u

/* 4.3 us within racks and 10.1 us between them, as in a lab; hosts are dealt to racks by number. */
static void measure_lab(enum survey_kind kind, struct rng *rng, struct survey *out)
{
	static char names[LAB_HOSTS][8];
	const char *list[LAB_HOSTS];
	struct error err;

	for (uint32_t i = 0; i < LAB_HOSTS; i++) {
		snprintf(names[i], sizeof(names[i]), "h%u", i);
		list[i] = names[i];
	}
	CHECK(survey_init(out, list, LAB_HOSTS, &err) == ESP_OK &&
	      matrix_init(&out->matrices[kind], LAB_HOSTS, &err) == ESP_OK);
	for (uint32_t i = 0; i < LAB_HOSTS; i++)
		for (uint32_t j = 0; j < i; j++) {
			bool same = i % LAB_RACKS == j % LAB_RACKS;
			double us = (same ? 4.3 : 10.1) + 0.2 * rng_unit(rng), per_byte = same ? 168 + 10 * rng_unit(rng) : 400 +
			            1100 * rng_unit(rng);
			matrix_set(&out->matrices[kind], i, j, kind == SURVEY_LATENCY ? us * 1e-6 : per_byte * 1e-9);
		}
}

/* The racks are found, or, if they need not be, no other answer is certain. Frees the survey. */
static void check_lab(struct survey *survey, bool must, const char *what, uint64_t seed)
{
	const struct verdict_wish wish = {.seed = seed};
	struct verdict verdict;
	struct error err = {0};

	CHECK_MSG(discover_verdict_make(survey, &wish, &verdict, &err) == ESP_OK, "%s", err.text);
	bool right = verdict.grouping.count == LAB_RACKS;
	for (uint32_t i = 0; i < LAB_HOSTS; i++)
		right = right && verdict.grouping.group_of[i] == i % LAB_RACKS;
	CHECK_MSG(right || (!must && verdict.word <= VERDICT_UNSURE), "seed %" PRIu64 ", %s: %u groups, %s", seed, what,
	          verdict.grouping.count, discover_verdict_word_text(verdict.word));
	discover_verdict_fini(&verdict);
	survey_fini(survey);
}

/* Other traffic fills the uplink of a rack: nearly all of its pairs with other racks are thousands of times as far. */
static void test_busy_uplinks(uint64_t seed)
{
	for (uint32_t busy = 1; busy <= 3; busy++) {
		struct survey survey;
		struct rng rng;

		rng_init(&rng, seed + busy);
		measure_lab(SURVEY_LATENCY, &rng, &survey);
		for (uint32_t i = 0; i < LAB_HOSTS; i++)
			for (uint32_t j = 0; j < i; j++)
				if (i % LAB_RACKS != j % LAB_RACKS && (i % LAB_RACKS < busy || j % LAB_RACKS < busy) &&
				    rng_chance(&rng, 97, 100))
					matrix_set(&survey.matrices[SURVEY_LATENCY], i, j, (0.2 + 18 * rng_unit(&rng)) * 1e-3);
		check_lab(&survey, busy == 1, "busy uplinks", seed);
	}
}

/* Other traffic fills the link of a host evenly: it is far from all, a little less so from its own rack. */
static void test_busy_host(uint64_t seed)
{
	struct survey survey;
	struct rng rng;

	rng_init(&rng, seed);
	measure_lab(SURVEY_LATENCY, &rng, &survey);
	for (uint32_t j = 1; j < LAB_HOSTS; j++)
		matrix_set(&survey.matrices[SURVEY_LATENCY], 0, j, matrix_get(&survey.matrices[SURVEY_LATENCY], 0, j) + 700e-6 +
		           0.4e-6 * rng_unit(&rng));
	check_lab(&survey, true, "a busy host", seed);
}

/* The position of a host whose distances are noise is unknown, and the answer is `unsure`. */
static void test_noisy_host(uint64_t seed)
{
	const struct verdict_wish wish = {.seed = seed};
	struct verdict verdict;
	struct survey survey;
	struct error err = {0};
	struct rng rng;

	rng_init(&rng, seed);
	measure_lab(SURVEY_LATENCY, &rng, &survey);
	for (uint32_t j = 1; j < LAB_HOSTS; j++)
		matrix_set(&survey.matrices[SURVEY_LATENCY], 0, j, (0.1 + rng_unit(&rng)) * 1e-3);
	CHECK(discover_verdict_make(&survey, &wish, &verdict, &err) == ESP_OK);
	CHECK_MSG(verdict.word == VERDICT_UNSURE, "seed %" PRIu64 ": %s", seed, discover_verdict_word_text(verdict.word));
	for (uint32_t i = 1; i < LAB_HOSTS; i++) /* the others are placed correctly */
		for (uint32_t j = 1; j < i; j++)
			CHECK((verdict.grouping.group_of[i] == verdict.grouping.group_of[j]) == (i % LAB_RACKS == j % LAB_RACKS));
	discover_verdict_fini(&verdict);
	survey_fini(&survey);
}

/* A host claims to be next to all others. The others are placed correctly. */
static void test_liar(uint64_t seed)
{
	const struct verdict_wish wish = {.seed = seed};
	struct verdict verdict;
	struct survey survey;
	struct error err = {0};
	struct rng rng;

	rng_init(&rng, seed);
	measure_lab(SURVEY_LATENCY, &rng, &survey);
	for (uint32_t j = 1; j < LAB_HOSTS; j++)
		matrix_set(&survey.matrices[SURVEY_LATENCY], 0, j, 1e-9);
	CHECK(discover_verdict_make(&survey, &wish, &verdict, &err) == ESP_OK);
	for (uint32_t i = 1; i < LAB_HOSTS; i++)
		for (uint32_t j = 1; j < i; j++)
			CHECK_MSG((verdict.grouping.group_of[i] == verdict.grouping.group_of[j]) ==
			          (i % LAB_RACKS == j % LAB_RACKS), "seed %" PRIu64 ": a liar makes %u groups", seed,
			          verdict.grouping.count);
	discover_verdict_fini(&verdict);
	survey_fini(&survey);
}

/* Two pairs of a rack were disturbed. The third one places the host: disturbance never makes a pair look nearer. */
static void test_two_late_pairs(uint64_t seed)
{
	struct survey survey;
	struct rng rng;

	rng_init(&rng, seed);
	measure_lab(SURVEY_LATENCY, &rng, &survey);
	matrix_set(&survey.matrices[SURVEY_LATENCY], 1, 5, 9.3e-6);
	matrix_set(&survey.matrices[SURVEY_LATENCY], 1, 9, 10.8e-6);
	check_lab(&survey, true, "two late pairs", seed);
}

/*
 * Some flows of a rack got little in their short time. A plan for five groups may look faster on these rates;
 * it does not have the evidence.
 */
static void test_slow_flows(uint64_t seed)
{
	struct survey survey;
	struct rng rng;

	rng_init(&rng, seed);
	measure_lab(SURVEY_INVERSE_BANDWIDTH, &rng, &survey);
	matrix_set(&survey.matrices[SURVEY_INVERSE_BANDWIDTH], 2, 6, 254e-9);
	matrix_set(&survey.matrices[SURVEY_INVERSE_BANDWIDTH], 2, 10, 247e-9);
	matrix_set(&survey.matrices[SURVEY_INVERSE_BANDWIDTH], 6, 10, 820e-9);
	check_lab(&survey, true, "slow flows", seed);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	for (uint64_t i = 0; i < 10; i++) {
		test_busy_uplinks(seed + i);
		test_busy_host(seed + i);
		test_noisy_host(seed + i);
		test_liar(seed + i);
		test_two_late_pairs(seed + i);
		test_slow_flows(seed + i);
	}

	for (uint64_t i = 0; i < 5; i++)
		test_racks(seed + 100 * i);
	test_nearly_alike();
	test_told();
	return 0;
}
