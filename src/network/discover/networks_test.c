/*
 * Groups in networks of many kinds, over seeds: racks, three levels, sockets and dies, regions on a sphere, each clean
 * and with noise and missing pairs, and distances without any structure.
 *
 *     networks_test [--seed N] [--count N] [--table 1]
 *
 * Beside the groups that are found stand average linkage with the true number of groups, the same made even, and a
 * search by swaps from 200 random groupings. --table prints a line for each kind of network.
 */
#include "network/discover/judge_groups.h"

#include <math.h>

#define TEST_OPTIONS "--seed", "--count", "--table", "--kind", "--told"
#include "base/check.h"
#include "base/rng.h"
#include "network/discover/confirm.h"
#include "network/discover/linkage.h"
#include "network/discover/quality.h"
#include "network/discover/swaps.h"

#define HOSTS_MOST 1024u
#define LEVELS 2u
#define RESTARTS 200u
#define TOLD_MOST 200u /* hosts: with more the search by swaps takes too long for a test */

/* A network that is known: its distances, and what groups are right, at one level or two. */
struct network {
	uint32_t hosts, levels;
	uint32_t group_of[LEVELS][HOSTS_MOST];
	struct matrix clean;
};

struct kind {
	const char *name;
	void (*make)(struct network *network, const struct kind *kind, struct rng *rng);
	uint32_t racks, hosts; /* 0: random */
	double ratio;
	bool has_groups;
};

static double uniform(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_unit(rng);
}

/* The normal distribution. */
static double normal(struct rng *rng)
{
	return sqrt(-2 * log(1 - rng_unit(rng))) * cos(2 * 3.14159265358979 * rng_unit(rng));
}

/* Adds a host at a random place among those that are there. */
static void add_host(struct network *network, struct rng *rng, uint32_t fine, uint32_t coarse)
{
	uint32_t other = (uint32_t)rng_below(rng, network->hosts + 1), last = network->hosts++;

	for (uint32_t level = 0; level < LEVELS; level++)
		network->group_of[level][last] = network->group_of[level][other];
	network->group_of[0][other] = fine;
	network->group_of[1][other] = coarse;
}

/* Racks are not equally far from each other: by half, if they are far at all. */
static void spread(struct network *network, uint32_t racks, double ratio, struct rng *rng)
{
	double factor[64][64];

	for (uint32_t a = 0; a < racks; a++)
		for (uint32_t b = 0; b <= a; b++)
			factor[a][b] = factor[b][a] = a == b ? 1 : ratio < 3 ? ratio : ratio * uniform(rng, 0.5, 1.5);
	for (uint32_t i = 0; i < network->hosts; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&network->clean, i, j, 20 * factor[network->group_of[0][i]][network->group_of[0][j]]);
}

/* near: within the finest groups; then once, and twice further. */
static void fill(struct network *network, double near, double far, double farthest)
{
	struct error err;

	CHECK(matrix_init(&network->clean, network->hosts, &err) == ESP_OK);
	for (uint32_t i = 0; i < network->hosts; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&network->clean, i, j,
			           network->group_of[0][i] == network->group_of[0][j]   ? near
			           : network->group_of[1][i] == network->group_of[1][j] ? far
			                                                                : farthest);
}

static void make_racks(struct network *network, const struct kind *kind, struct rng *rng)
{
	for (uint32_t rack = 0; rack < kind->racks; rack++) {
		uint32_t size = kind->hosts ? kind->hosts : 4 + (uint32_t)rng_below(rng, 13);
		for (uint32_t i = 0; i < size; i++)
			add_host(network, rng, rack, rack);
	}
	network->levels = 1;
	fill(network, 20, 20, 20);
	spread(network, kind->racks, kind->ratio, rng);
}

static void make_rows(struct network *network, const struct kind *kind, struct rng *rng)
{
	for (uint32_t i = 0; i < kind->racks * kind->hosts; i++)
		add_host(network, rng, i / kind->hosts, i / kind->hosts / 4);
	network->levels = 2;
	fill(network, 20, 20 * kind->ratio, 20 * kind->ratio * kind->ratio);
}

/* Cores: two sockets of so many dies. */
static void make_dies(struct network *network, const struct kind *kind, struct rng *rng)
{
	for (uint32_t i = 0; i < kind->racks * kind->hosts; i++)
		add_host(network, rng, i / kind->hosts, i / kind->hosts / (kind->racks / 2));
	network->levels = 2;
	fill(network, 0.1, 0.17, 0.17 * kind->ratio);
}

/* Regions anywhere on a sphere, 20 ms from each other or more, with zones inside. */
static void make_regions(struct network *network, const struct kind *kind, struct rng *rng)
{
	double at[HOSTS_MOST][3];
	uint32_t zones = 0, zone_of[HOSTS_MOST], region_of[HOSTS_MOST];
	struct error err;

	for (uint32_t region = 0; region < kind->racks; region++) {
		bool is_near = true;
		while (is_near) {
			double length = 0;
			for (uint32_t d = 0; d < 3; d++) {
				at[region][d] = normal(rng);
				length += at[region][d] * at[region][d];
			}
			for (uint32_t d = 0; d < 3; d++)
				at[region][d] /= sqrt(length);
			is_near = false;
			for (uint32_t other = 0; other < region; other++)
				is_near = is_near || at[region][0] * at[other][0] + at[region][1] * at[other][1] +
				                             at[region][2] * at[other][2] > cos(0.3);
		}
		for (uint32_t zone = 0; zone < 2 + rng_below(rng, 2); zone++, zones++)
			for (uint32_t i = 0; i < 2 + rng_below(rng, 3); i++)
				add_host(network, rng, region, zones);
	}
	network->levels = 1;
	for (uint32_t i = 0; i < network->hosts; i++) {
		region_of[i] = network->group_of[0][i];
		zone_of[i] = network->group_of[1][i];
	}
	CHECK(matrix_init(&network->clean, network->hosts, &err) == ESP_OK);
	for (uint32_t i = 0; i < network->hosts; i++)
		for (uint32_t j = 0; j < i; j++) {
			const double *a = at[region_of[i]], *b = at[region_of[j]];
			double apart = acos(fmin(1, a[0] * b[0] + a[1] * b[1] + a[2] * b[2]));
			matrix_set(&network->clean, i, j, region_of[i] != region_of[j] ? 2 + 66 * apart
			           : zone_of[i] != zone_of[j]                         ? 1.2 : 0.5);
		}
}

static void make_uniform(struct network *network, const struct kind *kind, struct rng *rng)
{
	struct error err;

	network->hosts = kind->hosts;
	CHECK(matrix_init(&network->clean, network->hosts, &err) == ESP_OK);
	for (uint32_t i = 0; i < network->hosts; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&network->clean, i, j, uniform(rng, 10, 10 * kind->ratio));
}

/* nine in ten of the distances are within this ratio */
static void make_lognormal(struct network *network, const struct kind *kind, struct rng *rng)
{
	struct error err;

	network->hosts = kind->hosts;
	CHECK(matrix_init(&network->clean, network->hosts, &err) == ESP_OK);
	for (uint32_t i = 0; i < network->hosts; i++)
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&network->clean, i, j, 30 * exp(normal(rng) * log(kind->ratio) / 3.29));
}

static const struct kind kinds[] = {
	{"4 racks of 4, 1.5", make_racks, 4, 4, 1.5, true},
	{"8 racks of 8, 1.5", make_racks, 8, 8, 1.5, true},
	{"12 racks of 16, 1.5", make_racks, 12, 16, 1.5, true},
	{"16 racks of 4, 1.5", make_racks, 16, 4, 1.5, true},
	{"4 racks of 4, 5", make_racks, 4, 4, 5, true},
	{"16 racks of 8, 5", make_racks, 16, 8, 5, true},
	{"32 racks of 4, 5", make_racks, 32, 4, 5, true},
	{"8 racks of 8, 15", make_racks, 8, 8, 15, true},
	{"16 racks of 4, 15", make_racks, 16, 4, 15, true},
	{"24 racks of 16, 15", make_racks, 24, 16, 15, true},
	{"64 racks of 8, 15", make_racks, 64, 8, 15, true},
	{"64 racks of 4, 1.5", make_racks, 64, 4, 1.5, true},
	{"5 unequal racks, 2", make_racks, 5, 0, 2, true},
	{"12 unequal racks, 5", make_racks, 12, 0, 5, true},
	{"20 unequal racks, 15", make_racks, 20, 0, 15, true},
	{"8 racks of 4 in rows, 1.5", make_rows, 8, 4, 1.5, true},
	{"16 racks of 8 in rows, 2", make_rows, 16, 8, 2, true},
	{"16 racks of 8 in rows, 4", make_rows, 16, 8, 4, true},
	{"8 dies of 8 in 2 sockets", make_dies, 8, 8, 1.3, true},
	{"8 dies of 16 in 2 sockets", make_dies, 8, 16, 3, true},
	{"8 regions", make_regions, 8, 0, 0, true},
	{"20 regions", make_regions, 20, 0, 0, true},
	{"uniform, 16", make_uniform, 0, 16, 10, false},
	{"uniform, 64", make_uniform, 0, 64, 10, false},
	{"uniform, 99", make_uniform, 0, 99, 10, false},
	{"uniform, 99, to 2", make_uniform, 0, 99, 2, false},
	{"uniform, 200", make_uniform, 0, 200, 10, false},
	{"lognormal, 16", make_lognormal, 0, 16, 10, false},
	{"lognormal, 64", make_lognormal, 0, 64, 10, false},
	{"lognormal, 64, to 3", make_lognormal, 0, 64, 3, false},
};

/* 20 % of noise, and one pair of twenty is missing. */
static void disturb(struct matrix *matrix, struct rng *rng)
{
	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++) {
			double factor = fmax(0.2, 1 + 0.2 * normal(rng));
			matrix_set(matrix, i, j, rng_chance(rng, 5, 100) ? NAN : matrix_get(matrix, i, j) * factor);
		}
}

/* ---- references ---- */

/* The mean distance within groups, of the known pairs. */
static double inside(const struct matrix *matrix, const struct grouping *grouping)
{
	double sum = 0, pairs = 0;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++)
			if (grouping->group_of[i] == grouping->group_of[j] && !isnan(matrix_get(matrix, i, j))) {
				sum += matrix_get(matrix, i, j);
				pairs++;
			}
	return pairs > 0 ? sum / pairs : 0;
}

static double search_swaps(const struct matrix *matrix, uint32_t groups, uint64_t seed)
{
	struct matrix filled;
	struct error err;
	double best = INFINITY;
	uint32_t restarts = matrix->size > 128 ? RESTARTS / 10 : RESTARTS; /* as they take long */

	CHECK(discover_confirm(matrix, &filled, &err) == ESP_OK);
	for (uint32_t i = 0; i < restarts; i++) {
		struct swaps_bounds even = {matrix->size / groups, (matrix->size + groups - 1) / groups};
		struct grouping grouping;

		CHECK(grouping_random(&grouping, matrix->size, groups, seed + i, &err) == ESP_OK);
		CHECK(discover_swaps_polish(&filled, even, &grouping, &err) == ESP_OK);
		best = fmin(best, inside(matrix, &grouping));
		grouping_fini(&grouping);
	}
	matrix_fini(&filled);
	return best;
}

static void link_average(const struct matrix *matrix, uint32_t groups, bool even, struct grouping *out)
{
	struct matrix filled;
	struct linkage linkage;
	struct error err;

	CHECK(discover_confirm(matrix, &filled, &err) == ESP_OK);
	CHECK(discover_linkage_make(&filled, &linkage, &err) == ESP_OK);
	CHECK(discover_linkage_cut(&linkage, groups, out, &err) == ESP_OK);
	if (even)
		CHECK(discover_swaps_fit(&filled, discover_swaps_bounds(matrix->size, groups, 1), out, &err) == ESP_OK);
	discover_linkage_fini(&linkage);
	matrix_fini(&filled);
}

/* ---- what is found ---- */

static void find(const struct matrix *matrix, uint32_t groups, struct verdict *out)
{
	static char names[HOSTS_MOST][12];
	const char *list[HOSTS_MOST];
	const struct verdict_wish wish = {.seed = 1, .groups = groups};
	struct survey survey;
	struct error err = {0};

	for (uint32_t i = 0; i < matrix->size; i++) {
		snprintf(names[i], sizeof(names[i]), "h%u", i);
		list[i] = names[i];
	}
	CHECK(survey_init(&survey, list, matrix->size, &err) == ESP_OK);
	CHECK(matrix_copy(&survey.matrices[SURVEY_LATENCY], matrix, &err) == ESP_OK);
	CHECK_MSG(discover_verdict_make(&survey, &wish, out, &err) == ESP_OK, "%s", err.text);
	survey_fini(&survey);
}

struct tally {
	/* linkage is exact; ours is; linkage alone is; an answer that a job uses */
	uint32_t runs, linked, found, lost, used;
	double worst_swaps, worst_even;           /* our mean inside over theirs */
};

static bool is_right(const struct network *network, const struct grouping *grouping)
{
	for (uint32_t level = 0; level < network->levels; level++) {
		struct grouping truth;
		struct error err;

		CHECK(grouping_from(&truth, network->group_of[level], network->hosts, &err) == ESP_OK);
		bool equal = grouping_equal(&truth, grouping);
		grouping_fini(&truth);
		if (equal)
			return true;
	}
	return false;
}

/* Average linkage with the true number of groups, at any level. */
static bool is_linked(const struct network *network, const struct matrix *matrix)
{
	bool linked = true;

	for (uint32_t level = 0; level < network->levels; level++) {
		struct grouping truth, cut;
		struct error err;

		CHECK(grouping_from(&truth, network->group_of[level], network->hosts, &err) == ESP_OK);
		link_average(matrix, truth.count, false, &cut);
		linked = linked && grouping_equal(&truth, &cut);
		grouping_fini(&truth);
		grouping_fini(&cut);
	}
	return linked;
}

static uint32_t count_groups(const struct network *network, const struct kind *kind)
{
	struct grouping truth;
	struct error err;

	if (!kind->has_groups)
		return 8;
	CHECK(grouping_from(&truth, network->group_of[0], network->hosts, &err) == ESP_OK);
	uint32_t count = truth.count;
	grouping_fini(&truth);
	return count;
}

/* The paper's way alone: k-means on the embedding, the most even of the tightest. */
static double cluster_alone(const struct matrix *matrix, uint32_t groups, uint64_t seed)
{
	const struct candidates_options options = {.groups_least = groups, .groups_most = groups, .seed = seed};
	struct candidates candidates;
	struct error err;

	CHECK(discover_candidates_make(matrix, &options, &candidates, &err) == ESP_OK);
	double result = inside(matrix, &candidates.list[0].grouping);
	discover_candidates_fini(&candidates);
	return result;
}

/* The means that the table in docs/results/plink.md has. */
static void print_told(const struct matrix *matrix, uint32_t groups, double ours, double swaps, double even,
                       uint64_t seed)
{
	struct grouping linked;

	link_average(matrix, groups, false, &linked);
	printf("  inside, %u groups of %u hosts: ours %.3g, k-means %.3g, linkage %.3g, even %.3g, swaps %.3g\n", groups,
	       matrix->size, ours, cluster_alone(matrix, groups, seed), inside(matrix, &linked), even, swaps);
	grouping_fini(&linked);
}

/* For a given number of groups: beside the search by swaps, and average linkage made even. */
static void compare_told(const struct matrix *matrix, uint32_t groups, uint64_t seed, struct tally *tally, bool table)
{
	struct grouping even;
	struct verdict verdict;

	link_average(matrix, groups, true, &even);
	find(matrix, groups, &verdict);
	double ours = inside(matrix, &verdict.grouping), swaps = search_swaps(matrix, groups, seed);
	if (table)
		print_told(matrix, groups, ours, swaps, inside(matrix, &even), seed);
	tally->worst_swaps = fmax(tally->worst_swaps, ours / swaps);
	tally->worst_even = fmax(tally->worst_even, ours / inside(matrix, &even));
	CHECK(verdict.grouping.count == groups && verdict.word == VERDICT_TOLD);
	discover_verdict_fini(&verdict);
	grouping_fini(&even);
}

static void compare_free(const struct network *network, const struct kind *kind, const struct matrix *matrix,
                         struct tally *tally, bool table)
{
	struct verdict verdict;
	bool linked = kind->has_groups && is_linked(network, matrix);

	find(matrix, 0, &verdict);
	bool right = kind->has_groups ? is_right(network, &verdict.grouping) : verdict.word <= VERDICT_UNSURE;
	tally->linked += linked;
	tally->found += right;
	tally->lost += kind->has_groups ? linked && !right : !right;
	tally->used += verdict.word > VERDICT_UNSURE;
	if (!right && table)
		printf("  %s: %u groups of %u, %s\n", kind->name, verdict.grouping.count, count_groups(network, kind),
		       discover_verdict_word_text(verdict.word));
	discover_verdict_fini(&verdict);
}

static void run_kind(const struct kind *kind, bool noisy, uint64_t seed, uint32_t count, bool told, bool table)
{
	struct tally tally = {0};

	for (uint32_t i = 0; i < count; i++) {
		static struct network network;
		struct rng rng;

		network.hosts = 0;
		rng_init(&rng, seed + i);
		kind->make(&network, kind, &rng);
		if (noisy)
			disturb(&network.clean, &rng);
		tally.runs++;
		compare_free(&network, kind, &network.clean, &tally, table);
		if (told && network.hosts <= TOLD_MOST)
			compare_told(&network.clean, count_groups(&network, kind), seed + i, &tally, table);
		matrix_fini(&network.clean);
	}
	if (table) {
		printf("%-26s %-6s found %2u linked %2u lost %2u of %2u, used %2u; inside: of swaps %.2f, of linkage %.2f\n",
		       kind->name, noisy ? "noisy" : "clean", tally.found, tally.linked, tally.lost, tally.runs, tally.used,
		       tally.worst_swaps, tally.worst_even);
		fflush(stdout);
		return;
	}
	CHECK_MSG(tally.lost == 0, "seed %llu: %s, %s: %u of %u are not found", (unsigned long long)seed, kind->name,
	          noisy ? "noisy" : "clean", tally.lost, tally.runs);
	CHECK_MSG(tally.worst_swaps <= 1.1 && tally.worst_even <= 1 + 1e-9, "seed %llu: %s, %s: inside %g and %g",
	          (unsigned long long)seed, kind->name, noisy ? "noisy" : "clean", tally.worst_swaps, tally.worst_even);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), only = test_option(argc, argv, "--kind", UINT64_MAX);
	uint32_t count = (uint32_t)test_option(argc, argv, "--count", 1);
	bool table = test_option(argc, argv, "--table", 0) != 0, told = test_option(argc, argv, "--told", 1) != 0;

	for (uint64_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int noisy = 0; noisy < 2; noisy++)
			if ((only == UINT64_MAX || only == i) && (kinds[i].has_groups || !noisy))
				run_kind(&kinds[i], noisy, seed, count, told, table);
	return 0;
}
