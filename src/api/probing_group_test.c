/* Racks in matrices as probes make them: near in racks, further between them, and disturbed in one direction only. */
#include "api/probing_group.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define HOSTS_MOST 32u

static void shuffle(uint32_t *list, uint32_t count, struct rng *rng)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = (uint32_t)rng_below(rng, i), kept = list[i - 1];
		list[i - 1] = list[j];
		list[j] = kept;
	}
}

struct network {
	uint32_t racks, hosts; /* of a rack */
	double near, far;      /* distances */
	double noise;          /* share by which they differ */
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

static void make_survey(const struct network *network, enum survey_kind kind, struct rng *rng, struct survey *out, struct grouping *truth)
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
	CHECK_MSG(verdict_make(&survey, &wish, &verdict, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(grouping_equal(&verdict.grouping, &truth), "seed %" PRIu64 ": %u racks of %u, by %s: %u groups", seed, network->racks,
	          network->hosts, survey_kind_name(kind), verdict.grouping.count);
	CHECK(verdict.kind == kind && (verdict.word != VERDICT_NONE) == (network->racks > 1));
	for (uint32_t i = 0; i < survey.count && network->racks > 1; i++)
		CHECK(verdict.belonging[i] > 0 && verdict.belonging[i] <= 1);
	verdict_fini(&verdict);
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

/* Clear, and of no use: a hundredth of a difference. */
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
	CHECK(verdict_make(&survey, &wish, &verdict, &err) == ESP_OK);
	CHECK(verdict.word == VERDICT_NONE && verdict.grouping.count == 1);
	verdict_fini(&verdict);
	CHECK(verdict_make(&survey, &told, &verdict, &err) == ESP_OK);
	CHECK(verdict.word == VERDICT_TOLD && grouping_equal(&verdict.grouping, &truth));
	verdict_fini(&verdict);
	CHECK(verdict_make(&survey, &too_many, &verdict, &err) == ESP_EINVAL);
	survey_fini(&survey);
	grouping_fini(&truth);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	for (uint64_t i = 0; i < 5; i++)
		test_racks(seed + 100 * i);
	test_nearly_alike();
	return 0;
}
