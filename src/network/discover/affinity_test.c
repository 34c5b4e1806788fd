#include "network/discover/affinity.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES 16u

static void make(struct rng *rng, uint32_t racks, double gap, double jitter, struct matrix *matrix)
{
	double own[NODES];
	struct error err;

	CHECK(matrix_init(matrix, NODES, &err) == ESP_OK);
	for (uint32_t i = 0; i < NODES; i++) {
		own[i] = rng_unit(rng) * 10;
		for (uint32_t j = 0; j < i; j++)
			matrix_set(matrix, i, j, 30 + (i % racks == j % racks ? 0 : gap) + own[i] + own[j] + rng_unit(rng) *
			           jitter);
	}
}

static struct grouping racks_of(uint32_t racks)
{
	struct grouping grouping;
	uint32_t labels[NODES];

	for (uint32_t i = 0; i < NODES; i++)
		labels[i] = i % racks;
	CHECK(grouping_from(&grouping, labels, NODES, NULL) == ESP_OK);
	return grouping;
}

/* The true grouping has the most evidence, also with disturbed and unknown pairs, and its gap is the planted one. */
static void test_judge(struct rng *rng)
{
	struct affinity_verdict verdicts[NODES + 1];
	struct affinity affinity;
	struct matrix matrix;
	struct error err;

	for (int turn = 0; turn < 12; turn++) {
		uint32_t racks = 1u << turn % 3; /* 1, 2, 4 */

		make(rng, racks, 6, 4, &matrix);
		matrix_set(&matrix, 2, 3, 500);
		matrix_set(&matrix, 8, 12, 100);
		matrix_set(&matrix, 1, 5, NAN);
		CHECK(discover_affinity_init(&affinity, &matrix, false, &err) == ESP_OK);
		for (uint32_t count = 1; count <= 8; count *= 2) {
			struct grouping grouping = racks_of(count);

			CHECK(discover_affinity_judge(&affinity, &grouping, &verdicts[count], &err) == ESP_OK);
			grouping_fini(&grouping);
		}
		CHECK(verdicts[1].evidence == 0 && verdicts[1].gap == 0);
		for (uint32_t count = 1; count <= 8; count *= 2)
			CHECK_MSG(count == racks || verdicts[count].evidence < verdicts[racks].evidence,
			          "turn %d: %g for %u racks, %g for %u", turn, verdicts[count].evidence, count,
			          verdicts[racks].evidence, racks);
		CHECK_MSG(racks == 1 || fabs(verdicts[racks].gap - 6) < 1.5, "a gap of %g", verdicts[racks].gap);
		CHECK(verdicts[racks].noise > 0 && verdicts[racks].noise < 3);
		discover_affinity_fini(&affinity);
		matrix_fini(&matrix);
	}
}

/* Without noise the evidence is large and finite. */
static void test_exact(struct rng *rng)
{
	struct grouping grouping = racks_of(4);
	struct affinity_verdict verdict;
	struct affinity affinity;
	struct matrix matrix;
	struct error err;

	make(rng, 4, 6, 0, &matrix);
	CHECK(discover_affinity_init(&affinity, &matrix, false, &err) == ESP_OK &&
	      discover_affinity_judge(&affinity, &grouping, &verdict, &err) == ESP_OK);
	CHECK_MSG(isfinite(verdict.evidence) && verdict.evidence > 100 && fabs(verdict.gap - 6) < 0.1,
	          "evidence %g, gap %g", verdict.evidence, verdict.gap);
	discover_affinity_fini(&affinity);
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t j = 0; j < i; j++)
			matrix_set(&matrix, i, j, 7); /* all equal */
	}
	CHECK(discover_affinity_init(&affinity, &matrix, false, &err) == ESP_OK &&
	      discover_affinity_judge(&affinity, &grouping, &verdict, &err) == ESP_OK);
	CHECK_MSG(verdict.evidence < 0, "%g", verdict.evidence);
	discover_affinity_fini(&affinity);
	matrix_fini(&matrix);
	grouping_fini(&grouping);
}

/* Wrong groupings are repaired, as far as the minimum size permits. */
static void test_polish(struct rng *rng, uint64_t seed)
{
	struct affinity affinity;
	struct matrix matrix;
	struct error err;
	uint32_t moves, found = 0, sizes[4];

	for (uint64_t turn = 0; turn < 30; turn++) {
		uint32_t racks = turn % 2 ? 2 : 4;
		struct grouping truth = racks_of(racks), grouping;

		make(rng, racks, 6, 3, &matrix);
		CHECK(discover_affinity_init(&affinity, &matrix, false, &err) == ESP_OK);
		CHECK(grouping_random(&grouping, NODES, racks, seed + turn, &err) == ESP_OK);
		CHECK(discover_affinity_polish(&affinity, 1, &grouping, &moves, &err) == ESP_OK);
		found += grouping_equal(&grouping, &truth);
		grouping_fini(&grouping);
		grouping = racks_of(racks);
		CHECK(discover_affinity_polish(&affinity, 1, &grouping, &moves, &err) == ESP_OK && moves == 0 &&
		      grouping_equal(&grouping, &truth));
		grouping_fini(&grouping);
		uint32_t labels[NODES] = {0}; /* a minimum of 2 keeps these from reaching sizes of 4 */
		for (uint32_t i = 0; i < racks; i++)
			labels[i] = labels[i + 8] = i;
		CHECK(grouping_from(&grouping, labels, NODES, &err) == ESP_OK);
		CHECK(discover_affinity_polish(&affinity, 2, &grouping, &moves, &err) == ESP_OK && grouping.count == racks);
		grouping_sizes(&grouping, sizes);
		for (uint32_t group = 0; group < racks; group++)
			CHECK(sizes[group] >= 2);
		grouping_fini(&grouping);
		grouping_fini(&truth);
		discover_affinity_fini(&affinity);
		matrix_fini(&matrix);
	}
	CHECK_MSG(found >= 15, "%u of 30 random groupings were polished to the truth", found);
}

/*
 * The part that a grouping explains, from the definition: the affinities are projected on the pattern of pairs
 * within groups, after the own parts of that pattern (found by iteration, not by the formula) are removed.
 */
static double projection(const struct affinity *affinity, const uint32_t *group_of)
{
	uint32_t n = affinity->nodes;
	double own[NODES] = {0}, length = 0, sum = 0;

	for (int turn = 0; turn < 40; turn++) {
		for (uint32_t i = 0; i < n; i++) {
			double rest = 0;

			for (uint32_t j = 0; j < n; j++)
				rest += j == i ? 0 : (group_of[i] == group_of[j]) - own[j];
			own[i] = rest / (n - 1);
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < i; j++) {
			double pattern = (group_of[i] == group_of[j]) - own[i] - own[j];

			length += pattern * pattern;
			sum += pattern * affinity->of[i * n + j];
		}
	}
	return length > 1e-9 ? sum / sqrt(length) : 0;
}

/*
 * Also for distances without structure: polishing explains more than before, and no exchange, nor a permitted
 * move, would explain more still.
 */
static void test_polish_climbs(struct rng *rng, uint64_t seed)
{
	struct affinity affinity;
	struct matrix matrix;
	struct error err;

	for (uint64_t turn = 0; turn < 40; turn++) {
		uint32_t racks = 2 + (uint32_t)rng_below(rng, 4), moves, sizes[NODES];
		struct grouping grouping;

		make(rng, turn % 2 ? racks : 1, 3, 10, &matrix);
		CHECK(discover_affinity_init(&affinity, &matrix, false, &err) == ESP_OK);
		CHECK(grouping_random(&grouping, NODES, racks, seed + turn, &err) == ESP_OK);
		double before = projection(&affinity, grouping.group_of);
		CHECK(discover_affinity_polish(&affinity, 2, &grouping, &moves, &err) == ESP_OK);
		double after = projection(&affinity, grouping.group_of);
		CHECK_MSG(moves == 0 ? after == before : after > before, "turn %llu: %u moves from %g to %g",
		          (unsigned long long)turn, moves, before, after);
		grouping_sizes(&grouping, sizes);
		for (uint32_t i = 0; i < NODES; i++) {
			uint32_t from = grouping.group_of[i];

			for (uint32_t to = 0; to < grouping.count && sizes[from] > 2; to++) {
				grouping.group_of[i] = to;
				CHECK_MSG(projection(&affinity, grouping.group_of) < after + 1e-6 * fabs(after),
				          "turn %llu: node %u to group %u", (unsigned long long)turn, i, to);
			}
			grouping.group_of[i] = from;
			for (uint32_t j = 0; j < i; j++) {
				uint32_t other = grouping.group_of[j];

				grouping.group_of[i] = other;
				grouping.group_of[j] = from;
				CHECK_MSG(projection(&affinity, grouping.group_of) < after + 1e-6 * fabs(after), "turn %llu: %u and %u",
				          (unsigned long long)turn, i, j);
				grouping.group_of[i] = from;
				grouping.group_of[j] = other;
			}
		}
		grouping_fini(&grouping);
		discover_affinity_fini(&affinity);
		matrix_fini(&matrix);
	}
}

/* Too few nodes for any evidence. */
static void test_few(void)
{
	for (uint32_t nodes = 1; nodes < 5; nodes++) {
		struct affinity_verdict verdict;
		struct affinity affinity;
		struct grouping grouping;
		struct matrix matrix;
		struct error err;

		CHECK(matrix_init(&matrix, nodes, &err) == ESP_OK &&
		      grouping_random(&grouping, nodes, nodes > 1 ? 2 : 1, 1, &err) == ESP_OK);
		CHECK(discover_affinity_init(&affinity, &matrix, false, &err) == ESP_OK &&
		      discover_affinity_judge(&affinity, &grouping, &verdict, &err) == ESP_OK);
		CHECK(verdict.evidence <= 0 && discover_affinity_polish(&affinity, 1, &grouping, NULL, &err) == ESP_OK);
		grouping_fini(&grouping);
		discover_affinity_fini(&affinity);
		matrix_fini(&matrix);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	struct rng rng;

	rng_init(&rng, seed);
	test_judge(&rng);
	test_exact(&rng);
	test_polish(&rng, seed);
	test_polish_climbs(&rng, seed);
	test_few();
	return 0;
}
