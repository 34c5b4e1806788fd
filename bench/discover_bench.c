/*
 * discover_bench.c - how long it takes to make groups of a matrix, in time of this process's own: embedding, and all candidates.
 *
 * discover_bench [NODES ...]: without, 16, 64, 256 and 1000 nodes in racks of about the square root of that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "network/discover/candidates.h"

static double user_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void make_matrix(struct matrix *matrix, uint32_t nodes)
{
	struct rng rng;
	uint32_t racks = 1;

	while (racks * racks < nodes)
		racks++;
	rng_init(&rng, nodes);
	if (matrix_init(matrix, nodes, NULL) != ESP_OK)
		exit(1);
	for (uint32_t i = 0; i < nodes; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, (i % racks == j % racks ? 30e-6 : 36e-6) + 3e-6 * rng_unit(&rng));
	}
}

static void measure(uint32_t nodes)
{
	static const double alphas[] = {1, 1.3, 2};
	struct matrix matrix;

	make_matrix(&matrix, nodes);
	printf("%6u", nodes);
	for (size_t i = 0; i < sizeof(alphas) / sizeof(alphas[0]); i++) {
		struct embed_options options = {.alpha = alphas[i]};
		struct embedding embedding;
		double start = user_seconds();

		if (discover_embed(&matrix, &options, &embedding, NULL) != ESP_OK)
			exit(1);
		printf(" %10.3f", user_seconds() - start);
		discover_embedding_fini(&embedding);
	}
	struct candidates_options options = {0};
	struct candidates candidates;
	struct candidates_choice choice;
	double start = user_seconds();
	if (discover_candidates_make(&matrix, &options, &candidates, NULL) != ESP_OK)
		exit(1);
	double made = user_seconds();
	if (discover_candidates_choose(&matrix, &options, &candidates, &choice, NULL) != ESP_OK)
		exit(1);
	printf(" %10.3f %10.3f %10u %10u\n", made - start, user_seconds() - made, candidates.count,
	       candidates.list[choice.index].grouping.count);
	fflush(stdout);
	discover_candidates_fini(&candidates);
	matrix_fini(&matrix);
}

int main(int argc, char **argv)
{
	static const uint32_t usual[] = {16, 64, 256, 1000};

	printf("%6s %10s %10s %10s %10s %10s %10s %10s\n", "nodes", "alpha 1 s", "1.3 s", "2 s", "all s", "choose s", "candidates", "groups");
	for (int i = 1; i < argc; i++)
		measure((uint32_t)strtoul(argv[i], NULL, 10));
	for (size_t i = 0; argc == 1 && i < sizeof(usual) / sizeof(usual[0]); i++)
		measure(usual[i]);
	return 0;
}
