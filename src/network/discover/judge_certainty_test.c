/*
 * A certain answer is right: over networks of many kinds, measured well and badly, it is compared with the
 * truth.
 *
 *     judge_certainty_test [--seed N] [--count N] [--table 1]
 *
 * Distances are made as probes make them. A latency is the cost of both hosts and the switches between them,
 * and noise that only lengthens; hosts and uplinks with other traffic are late by an amount that differs per
 * pair. A bandwidth is shared by the pairs of a round, over several passes, with flows that get less than their
 * share, or nothing, in their short time. Noise goes from none to far too much: where groups cannot be found,
 * `unsure` is the right answer. --table prints counts.
 */
#include "network/discover/judge_groups.h"

#include <math.h>

#define TEST_OPTIONS "--seed", "--count", "--table"
#include "base/check.h"
#include "base/rng.h"

#define HOSTS_MOST 32u
#define RACKS_MOST 6u

struct network {
	uint32_t racks, hosts;
	uint32_t rack_of[HOSTS_MOST];
};

static double uniform(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_unit(rng);
}

static double exponential(struct rng *rng, double mean)
{
	return -mean * log(1 - rng_unit(rng));
}

/* Racks of all sizes, hosts in random order. */
static void build(struct network *network, struct rng *rng)
{
	*network = (struct network){.racks = 1 + (uint32_t)rng_below(rng, RACKS_MOST)};
	uint32_t even = rng_chance(rng, 1, 2) ? 2 + (uint32_t)rng_below(rng, 4) : 0;

	for (uint32_t rack = 0; rack < network->racks; rack++) {
		uint32_t size = even ? even : 1 + (uint32_t)rng_below(rng, 5);
		if (network->racks == 1 && size < 5)
			size = 5;
		for (uint32_t i = 0; i < size; i++) {
			uint32_t other = (uint32_t)rng_below(rng, network->hosts + 1);
			network->rack_of[network->hosts++] = network->rack_of[other];
			network->rack_of[other] = rack;
		}
	}
}

/* ---- latency ---- */

static void measure_latency(const struct network *network, struct rng *rng, struct matrix *out)
{
	double near = uniform(rng, 4, 40), gap = near * uniform(rng, 0.1, 1.5),
	    jitter = gap * pow(10, uniform(rng, -2.5, 0.2));
	double own = near * uniform(rng, 0, 0.5), burst = rng_chance(rng, 1, 3) ? uniform(rng, 0, 0.1) : 0;
	double late_host[HOSTS_MOST], late_rack[RACKS_MOST] = {0}, own_host[HOSTS_MOST], steady = uniform(rng, 0, 1);
	uint32_t busy = rng_chance(rng, 1, 2) ? 10 : 0; /* of 100 links */

	for (uint32_t i = 0; i < network->hosts; i++) {
		own_host[i] = uniform(rng, 0, own);
		late_host[i] = rng_chance(rng, busy, 100) ? near * pow(10, uniform(rng, -1, 2)) : 0;
	}
	for (uint32_t i = 0; i < network->racks; i++)
		late_rack[i] = rng_chance(rng, busy, 100) ? near * pow(10, uniform(rng, -1, 2)) : 0;
	for (uint32_t i = 0; i < network->hosts; i++)
		for (uint32_t j = 0; j < i; j++) {
			bool same = network->rack_of[i] == network->rack_of[j];
			double late = late_host[i] + late_host[j] +
			              (same ? 0 : late_rack[network->rack_of[i]] + late_rack[network->rack_of[j]]);
			double us = near + (same ? 0 : gap) + own_host[i] + own_host[j] + exponential(rng, jitter) + late *
			            uniform(rng, steady, 1);
			if (rng_unit(rng) < burst)
				us += uniform(rng, 0, 30 * near);
			matrix_set(out, i, j, us * 1e-6);
		}
}

/* ---- bandwidth ---- */

struct speeds {
	double host[HOSTS_MOST], uplink[RACKS_MOST]; /* bytes per second */
	double jitter;
	uint32_t lost; /* of 1000 flows that get nothing */
};

static double less(double a, double b)
{
	return a < b ? a : b;
}

/* The rates of the flows of a round; each pair has two equal flows, one in each direction. */
static void play_round(const struct network *network, const struct speeds *speeds, const uint32_t *partner,
                       struct rng *rng, double *rate)
{
	uint32_t crossing[RACKS_MOST] = {0};

	for (uint32_t i = 0; i < network->hosts; i++)
		if (partner[i] != UINT32_MAX && network->rack_of[i] != network->rack_of[partner[i]])
			crossing[network->rack_of[i]]++;
	for (uint32_t i = 0; i < network->hosts; i++) {
		if (partner[i] == UINT32_MAX)
			continue;
		uint32_t a = network->rack_of[i], b = network->rack_of[partner[i]];
		double most = less(speeds->host[i], speeds->host[partner[i]]);
		if (a != b)
			most = less(most, less(speeds->uplink[a] / crossing[a], speeds->uplink[b] / crossing[b]));
		rate[i] = rng_chance(rng, speeds->lost, 1000) ? 0 : most / (1 + exponential(rng, speeds->jitter));
	}
}

/* A tournament with a new random order of the hosts. */
static void play_pass(const struct network *network, const struct speeds *speeds, struct rng *rng, double *sums)
{
	uint32_t slot[HOSTS_MOST + 1] = {0}, n = network->hosts + network->hosts % 2, partner[HOSTS_MOST];
	double rate[HOSTS_MOST] = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = (uint32_t)rng_below(rng, i + 1);
		slot[i] = slot[other];
		slot[other] = i;
	}
	for (uint32_t round = 0; round + 1 < n; round++) {
		memset(partner, 0xff, sizeof(partner));
		for (uint32_t k = 0; k < n / 2; k++) {
			uint32_t a = slot[k == 0 ? n - 1 : (round + k) % (n - 1)], b = slot[(round + n - 1 - k) % (n - 1)];
			if (a < network->hosts && b < network->hosts) {
				partner[a] = b;
				partner[b] = a;
			}
		}
		play_round(network, speeds, partner, rng, rate);
		for (uint32_t i = 0; i < network->hosts; i++)
			if (partner[i] != UINT32_MAX)
				sums[i * network->hosts + partner[i]] += rate[i];
	}
}

static void measure_bandwidth(const struct network *network, struct rng *rng, struct matrix *out)
{
	struct speeds speeds = {.jitter = pow(10, uniform(rng, -2, -0.2)), .lost = rng_chance(rng, 1, 2)
	                        ? (uint32_t)rng_below(rng, 30) : 0};
	double sums[HOSTS_MOST * HOSTS_MOST] = {0}, over = uniform(rng, 1.5, 8), mixed = rng_chance(rng, 1, 3) ? 0.5 : 0;
	uint32_t passes = 1 + (uint32_t)rng_below(rng, 4), sizes[RACKS_MOST] = {0}, n = network->hosts;

	for (uint32_t i = 0; i < n; i++) {
		speeds.host[i] = 1e8 * (1 - (rng_chance(rng, 1, 8) ? uniform(rng, 0, mixed) : 0));
		sizes[network->rack_of[i]]++;
	}
	for (uint32_t rack = 0; rack < network->racks; rack++)
		speeds.uplink[rack] = 1e8 * sizes[rack] / over * (1 - uniform(rng, 0, mixed));
	for (uint32_t pass = 0; pass < passes; pass++)
		play_pass(network, &speeds, rng, sums);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (sums[i * n + j] + sums[j * n + i] > 0)
				matrix_set(out, i, j, 2.0 * passes / (sums[i * n + j] + sums[j * n + i]));
}

/* ---- verdicts ---- */

struct tally {
	uint32_t right[VERDICT_TOLD + 1], wrong[VERDICT_TOLD + 1];
};

static void judge(uint64_t seed, enum survey_kind kind, struct tally *tally)
{
	static char names[HOSTS_MOST][16];
	const char *list[HOSTS_MOST];
	const struct verdict_wish wish = {.seed = seed};
	struct network network;
	struct grouping truth;
	struct verdict verdict;
	struct survey survey;
	struct error err = {0};
	struct rng rng;

	rng_init(&rng, seed);
	do
		build(&network, &rng);
	while (network.hosts < 5);
	for (uint32_t i = 0; i < network.hosts; i++) {
		snprintf(names[i], sizeof(names[i]), "h%u", i);
		list[i] = names[i];
	}
	CHECK(survey_init(&survey, list, network.hosts, &err) == ESP_OK &&
	      matrix_init(&survey.matrices[kind], network.hosts, &err) == ESP_OK);
	if (kind == SURVEY_LATENCY)
		measure_latency(&network, &rng, &survey.matrices[kind]);
	else
		measure_bandwidth(&network, &rng, &survey.matrices[kind]);
	CHECK_MSG(discover_verdict_make(&survey, &wish, &verdict, &err) == ESP_OK, "seed %" PRIu64 ": %s", seed, err.text);
	CHECK(grouping_from(&truth, network.rack_of, network.hosts, &err) == ESP_OK);
	bool right = grouping_equal(&verdict.grouping, &truth);
	(right ? tally->right : tally->wrong)[verdict.word]++;
	if (!right && verdict.word == VERDICT_SURE)
		printf("seed %" PRIu64 ", %s: %u groups are sure, and %u are right\n", seed, survey_kind_name(kind),
		       verdict.grouping.count, truth.count);
	grouping_fini(&truth);
	discover_verdict_fini(&verdict);
	survey_fini(&survey);
}

/* Seeds first .. first + count - 1; counts certain answers in *sure, and wrong ones among them in *wrong. */
static void judge_all(uint64_t first, uint64_t count, bool table, uint32_t *wrong, uint32_t *sure)
{
	bool few = false;

	for (uint32_t kind = 0; kind < SURVEY_KINDS; kind++) {
		struct tally tally = {0};
		for (uint64_t i = 0; i < count; i++)
			judge(first + i, (enum survey_kind)kind, &tally);
		for (uint32_t word = 0; word < VERDICT_TOLD && table; word++)
			printf("%-18s %-10s right %4u wrong %4u\n", survey_kind_name((enum survey_kind)kind),
			       discover_verdict_word_text((enum verdict_word)word), tally.right[word], tally.wrong[word]);
		*wrong += tally.wrong[VERDICT_SURE];
		*sure += tally.wrong[VERDICT_SURE] + tally.right[VERDICT_SURE];
		few = few || (count >= 50 && tally.right[VERDICT_SURE] * 7 < count);
	}
	CHECK(!few); /* certainty that never occurs is useless */
}

/*
 * For the seeds that are always tried, no certain answer is wrong. For others one in twenty may be: certain
 * means 95 % of the evidence, and a host whose probes to all of its rack were disturbed cannot be told from one
 * that is alone.
 */
int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 0), count = test_option(argc, argv, "--count", 100);
	uint32_t wrong = 0, sure = 0;
	bool table = test_option(argc, argv, "--table", 0) != 0;

	judge_all(seed ? seed : 1, count, table, &wrong, &sure);
	if (seed == 0) {
		/* a host very near to two of its rack, with disturbed probes to the other two */
		judge_all(10002, 1, false, &wrong, &sure);
		CHECK_U64(wrong, 0);
	}
	CHECK_MSG(wrong * 20 <= sure, "%u of %u that are sure are wrong", wrong, sure);
	return 0;
}
