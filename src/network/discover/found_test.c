/*
 * How often racks are found in matrices as probes give them: a table with --count N runs of each case, and a
 * check that the networks of the lab and of ordinary datacenters are always found.
 *
 * The noise models were fixed before the results were known, the method was not (docs/discovery.md). A latency
 * is the sum of both hosts' costs, the cost of the switches between them, and noise that only lengthens; a
 * bandwidth is shared by the pairs of its round of a tournament. "jitter 3", "bursts" and "busy links" are
 * meant to be too hard in some runs.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "network/discover/candidates.h"
#include "network/discover/clean.h"
#include "network/discover/quality.h"

#define NODES_MAX 64u

struct layout {
	const char *name;
	uint32_t racks;
	uint32_t sizes[8];
};

static const struct layout layouts[] = {
	{"2 x 4", 2, {4, 4}},
	{"4 x 4", 4, {4, 4, 4, 4}},
	{"8 x 8", 8, {8, 8, 8, 8, 8, 8, 8, 8}},
	{"6 + 4 + 2", 3, {6, 4, 2}},
	{"12 + 8 + 5", 3, {12, 8, 5}},
	{"1 x 8", 1, {8}},
	{"1 x 16", 1, {16}},
};

/* Microseconds. */
struct noise {
	const char *name;
	double near, far;  /* between two hosts of a rack, and of two racks, without the hosts' own costs */
	double own;        /* hosts' own: from 0 to this                        */
	double jitter;     /* of a median: exponential with this mean */
	double burst;      /* this share of the pairs is late by up to */
	double burst_us;   /* this */
	/* this share of the hosts has a link with other traffic: all of its pairs are late by up to burst_us */
	double busy;
	bool again;        /* suspicious pairs are probed once more, and the shorter result counts */
	bool always;       /* has to be found in every run */
};

static const struct noise noises[] = {
	{"quiet", 30, 36, 0, 0.5, 0, 0, 0, false, true},
	{"own costs", 30, 36, 10, 0.5, 0, 0, 0, false, true},
	{"jitter 1", 30, 36, 3, 1, 0, 0, 0, false, true},
	{"jitter 2", 30, 36, 3, 2, 0, 0, 0, false, false},
	{"jitter 3", 30, 36, 3, 3, 0, 0, 0, false, false},
	{"bursts", 30, 36, 3, 1, 0.05, 200, 0, false, false},
	{"bursts, again", 30, 36, 3, 1, 0.05, 200, 0, true, false},
	{"busy links", 30, 36, 3, 1, 0, 60, 0.125, false, false},
};

static uint32_t lay_out(const struct layout *layout, struct rng *rng, uint32_t *rack_of)
{
	uint32_t nodes = 0;

	for (uint32_t rack = 0; rack < layout->racks; rack++) {
		for (uint32_t i = 0; i < layout->sizes[rack]; i++) {
			uint32_t other = (uint32_t)rng_below(rng, nodes + 1); /* hosts are shuffled */

			rack_of[nodes++] = rack_of[other];
			rack_of[other] = rack;
		}
	}
	return nodes;
}

static double exponential(struct rng *rng, double mean)
{
	return -mean * log(1 - rng_unit(rng));
}

/* The part that is the same whenever a pair is probed. */
struct hosts {
	const uint32_t *rack_of;
	double own[NODES_MAX], late[NODES_MAX];
};

static double probe(const struct noise *noise, const struct hosts *hosts, uint32_t i, uint32_t j, struct rng *rng)
{
	double us = hosts->rack_of[i] == hosts->rack_of[j] ? noise->near : noise->far;

	us += hosts->own[i] + hosts->own[j] + exponential(rng, noise->jitter) + (hosts->late[i] + hosts->late[j]) *
	      (0.8 + 0.4 * rng_unit(rng));
	if (rng_unit(rng) < noise->burst)
		us += rng_unit(rng) * noise->burst_us;
	return us * 1e-6;
}

/* As espalier probe does it: an embedding with few dimensions predicts the distance of a pair. */
static void probe_again(const struct noise *noise, const struct hosts *hosts, struct rng *rng, struct matrix *matrix)
{
	struct suspect suspects[NODES_MAX];
	struct embedding embedding;
	struct matrix fenced, model;
	struct error err;
	uint32_t count;

	CHECK(matrix_copy(&fenced, matrix, &err) == ESP_OK && discover_clean_fence(&fenced, NULL, &err) == ESP_OK);
	CHECK(discover_embed(&fenced, &(struct embed_options){.dimensions = 2}, &embedding, &err) == ESP_OK);
	CHECK(discover_embedding_matrix(&embedding, true, &model, &err) == ESP_OK);
	CHECK(discover_clean_suspects(matrix, &model, 0, suspects, NODES_MAX, &count, &err) == ESP_OK);
	for (uint32_t i = 0; i < count; i++)
		matrix_set(matrix, suspects[i].a, suspects[i].b,
		           fmin(suspects[i].measured, probe(noise, hosts, suspects[i].a, suspects[i].b, rng)));
	discover_embedding_fini(&embedding);
	matrix_fini(&fenced);
	matrix_fini(&model);
}

static void make_latencies(const struct noise *noise, const uint32_t *rack_of, struct rng *rng, struct matrix *matrix)
{
	struct hosts hosts = {.rack_of = rack_of};

	for (uint32_t i = 0; i < matrix->size; i++) {
		hosts.own[i] = rng_unit(rng) * noise->own;
		hosts.late[i] = rng_unit(rng) < noise->busy ? rng_unit(rng) * noise->burst_us : 0;
	}
	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, probe(noise, &hosts, i, j, rng));
	}
	if (noise->again)
		probe_again(noise, &hosts, rng, matrix);
}

/*
 * The rate of each pair of a round when all start together: hosts of 1 Gbit/s, uplinks with one host's rate
 * (1:4 for four hosts).
 */
static void make_bandwidths(uint32_t racks, const uint32_t *rack_of, double jitter, struct rng *rng,
                            struct matrix *matrix)
{
	uint32_t n = matrix->size + matrix->size % 2;

	/* a round-robin tournament: host n - 1 stays, the others rotate */
	for (uint32_t round = 0; round + 1 < n; round++) {
		uint32_t crossing[8] = {0};

		for (int pass = 0; pass < 2; pass++) {
			for (uint32_t k = 0; k < n / 2; k++) {
				uint32_t a = k == 0 ? n - 1 : (round + k) % (n - 1), b = (round + n - 1 - k) % (n - 1);

				if (a >= matrix->size || b >= matrix->size)
					continue;
				bool is_far = rack_of[a] != rack_of[b];
				if (pass == 0) {
					crossing[rack_of[a]] += is_far;
					crossing[rack_of[b]] += is_far;
					continue;
				}
				uint32_t sharing = crossing[rack_of[a]] > crossing[rack_of[b]] ? crossing[rack_of[a]]
				                                                               : crossing[rack_of[b]];
				double rate = is_far && racks > 1 ? 125e6 / sharing : 125e6;
				matrix_set(matrix, a, b, (1 + exponential(rng, jitter)) / rate);
			}
		}
	}
}

struct tally {
	uint32_t runs, offered, chosen;
};

/* Whether the true grouping is among the candidates, and whether it is chosen by the distances alone. */
static void run(const struct matrix *matrix, bool is_rate, const uint32_t *rack_of, uint64_t seed, struct tally *tally)
{
	struct candidates_options options = {.ratios = is_rate, .seed = seed};
	struct candidates candidates;
	struct candidates_choice choice;
	struct grouping truth;
	struct error err = {0};
	bool offered = false;

	CHECK_MSG(discover_candidates_make(matrix, &options, &candidates, &err) == ESP_OK, "%s", err.text);
	CHECK(discover_candidates_choose(matrix, &options, &candidates, &choice, &err) == ESP_OK);
	CHECK(grouping_from(&truth, rack_of, matrix->size, &err) == ESP_OK);
	for (uint32_t i = 0; i < candidates.count; i++)
		offered = offered || grouping_equal(&candidates.list[i].grouping, &truth);
	tally->runs++;
	tally->offered += offered;
	tally->chosen += grouping_equal(&candidates.list[choice.index].grouping, &truth);
	grouping_fini(&truth);
	discover_candidates_fini(&candidates);
}

static struct tally run_case(const struct layout *layout, const struct noise *noise, double rate_jitter, uint64_t seed,
                             uint32_t count)
{
	struct tally tally = {0};

	for (uint32_t i = 0; i < count; i++) {
		uint32_t rack_of[NODES_MAX] = {0};
		struct matrix matrix;
		struct error err;
		struct rng rng;

		rng_init(&rng, seed + i);
		uint32_t nodes = lay_out(layout, &rng, rack_of);
		CHECK(matrix_init(&matrix, nodes, &err) == ESP_OK);
		if (noise)
			make_latencies(noise, rack_of, &rng, &matrix);
		else
			make_bandwidths(layout->racks, rack_of, rate_jitter, &rng, &matrix);
		run(&matrix, !noise, rack_of, seed + i, &tally);
		matrix_fini(&matrix);
	}
	return tally;
}

static void print_row(const char *name, const struct tally *tallies, bool always)
{
	printf("%-16s", name);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		printf(" %4u %4u /%-4u", tallies[i].offered, tallies[i].chosen, tallies[i].runs);
	printf("\n");
	fflush(stdout);
	for (size_t i = 0; always && i < sizeof(layouts) / sizeof(layouts[0]); i++)
		CHECK_MSG(tallies[i].chosen == tallies[i].runs, "%s: %s was not found in every run", name, layouts[i].name);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1);
	uint32_t count = (uint32_t)test_option(argc, argv, "--count", 1);
	struct tally tallies[sizeof(layouts) / sizeof(layouts[0])];
	const double rate_jitters[] = {0.02, 0.1, 0.3};
	char name[40];

	printf("seed %llu; of each number of runs: the truth is among the candidates, and it is what distances alone speak "
	       "for\n%-16s", (unsigned long long)seed, "");
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		printf(" %-15s", layouts[i].name);
	printf("\n");
	for (size_t n = 0; n < sizeof(noises) / sizeof(noises[0]); n++) {
		for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
			tallies[i] = run_case(&layouts[i], &noises[n], 0, seed, count);
		print_row(noises[n].name, tallies, noises[n].always);
	}
	for (size_t n = 0; n < sizeof(rate_jitters) / sizeof(rate_jitters[0]); n++) {
		for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
			tallies[i] = run_case(&layouts[i], NULL, rate_jitters[n], seed, count);
		snprintf(name, sizeof(name), "rate, %.0f %%", rate_jitters[n] * 100);
		print_row(name, tallies, rate_jitters[n] < 0.2);
	}
	return 0;
}
