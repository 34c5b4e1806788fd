#include "network/discover/affinity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/discover/affinity_parts.h"

#define FILLS 30         /* rounds in which unknown pairs take the values that the own parts predict */
#define SWEEPS 100u      /* most passes of polishing; a few are usual */
#define PROGRESS 1e-9    /* of the explained part: less is rounding */

/* ---- residuals of pairs ---- */

/* The own parts by least squares over all pairs: own_i is (row_i - all / (2 (n - 1))) / (n - 2). */
static void fit_own(const struct affinity *affinity, double *own)
{
	uint32_t n = affinity->nodes;
	double all = 0;

	for (uint32_t i = 0; i < n; i++) {
		own[i] = 0;
		for (uint32_t j = 0; j < n; j++)
			own[i] += j == i ? 0 : affinity->of[(size_t)i * n + j];
		all += own[i];
	}
	for (uint32_t i = 0; i < n; i++)
		own[i] = (own[i] - all / (2.0 * (n - 1))) / (n - 2);
}

static double mean_known(const struct matrix *matrix)
{
	double sum = 0;

	for (uint32_t i = 0; i < matrix->size; i++) {
		for (uint32_t j = 0; j < i; j++)
			sum += isnan(matrix_get(matrix, i, j)) ? 0 : matrix_get(matrix, i, j);
	}
	uint64_t known = matrix_known(matrix);
	return known > 0 ? sum / (double)known : 0;
}

static void compute_residuals(struct affinity *affinity, const struct matrix *matrix, double *own)
{
	uint32_t n = affinity->nodes;
	uint64_t known = matrix_known(matrix);
	int rounds = known == (uint64_t)n * (n - 1) / 2 ? 1 : FILLS;
	double usual = mean_known(matrix);

	for (uint32_t i = 0; i < n; i++)
		own[i] = usual / 2;
	for (int round = 0; round < rounds; round++) {
		for (uint32_t i = 0; i < n; i++) {
			for (uint32_t j = 0; j < n; j++) {
				double value = matrix_get(matrix, i, j);

				affinity->of[(size_t)i * n + j] = isnan(value) ? own[i] + own[j] : value;
			}
		}
		fit_own(affinity, own);
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++) {
			double value = matrix_get(matrix, i, j), *rest = &affinity->of[(size_t)i * n + j];

			*rest = i == j || isnan(value) ? 0 : own[i] + own[j] - value;
		}
	}
}

enum esp_status discover_affinity_init(struct affinity *affinity, const struct matrix *matrix, bool ways,
                                       struct error *err)
{
	uint32_t n = matrix->size;

	*affinity = (struct affinity){.nodes = n, .matrix = matrix, .known = (double)matrix_known(matrix), .ways = ways};
	affinity->of = calloc((size_t)n * n, sizeof(*affinity->of));
	affinity->own = calloc(n, sizeof(*affinity->own));
	if (!affinity->own || !affinity->of) {
		discover_affinity_fini(affinity);
		return error_set(err, ESP_ENOMEM, "no memory for the affinity of %u nodes", n);
	}
	if (n >= AFFINITY_NODES_LEAST)
		compute_residuals(affinity, matrix, affinity->own);
	enum esp_status status = discover_affinity_judge_one(affinity, err);
	if (status != ESP_OK)
		discover_affinity_fini(affinity);
	return status;
}

void discover_affinity_fini(struct affinity *affinity)
{
	free(affinity->of);
	free(affinity->own);
	*affinity = (struct affinity){0};
}

/* ---- the part that a grouping explains ---- */

/*
 * A grouping's pattern has 1 for each pair within a group. Its squared length, after own parts are removed from
 * it as well, depends on the sizes only: with r_i other members for node i, R = sum r_i: R / 2 - (sum r_i^2 -
 * R^2 / (2 (n - 1))) / (n - 2).
 */
struct pattern {
	double others;  /* R           */
	double squares; /* sum r_i ^ 2 */
};

static void add_group(struct pattern *pattern, uint32_t size, double sign)
{
	double others = size > 0 ? size - 1.0 : 0;

	pattern->others += sign * size * others;
	pattern->squares += sign * size * others * others;
}

static double pattern_square(const struct pattern *pattern, uint32_t nodes)
{
	double n = nodes;

	return pattern->others / 2 - (pattern->squares - pattern->others * pattern->others / (2 * (n - 1))) / (n - 2);
}

/* The length of the measurement's projection on the pattern; negative: groups are further inside than outside. */
static double explained(double inside, const struct pattern *pattern, uint32_t nodes)
{
	double square = pattern_square(pattern, nodes);

	return square > 1e-9 ? inside / sqrt(square) : 0;
}

/* ---- polishing ---- */

struct polish {
	const struct affinity *affinity;
	struct grouping *grouping;
	uint32_t least;
	uint32_t *sizes;
	double *towards; /* nodes * groups: the summed affinity of a node to the nodes of a group */
	struct pattern pattern;
	double inside;
};

static double *towards(const struct polish *polish, uint32_t node)
{
	return polish->towards + (size_t)node * polish->grouping->count;
}

static void begin_polish(struct polish *polish)
{
	const struct affinity *affinity = polish->affinity;
	const uint32_t *group_of = polish->grouping->group_of;

	grouping_sizes(polish->grouping, polish->sizes);
	for (uint32_t group = 0; group < polish->grouping->count; group++)
		add_group(&polish->pattern, polish->sizes[group], 1);
	for (uint32_t i = 0; i < affinity->nodes; i++) {
		for (uint32_t j = 0; j < affinity->nodes; j++)
			towards(polish, i)[group_of[j]] += affinity->of[(size_t)i * affinity->nodes + j];
		polish->inside += towards(polish, i)[group_of[i]] / 2;
	}
}

static void move(struct polish *polish, uint32_t node, uint32_t to)
{
	uint32_t from = polish->grouping->group_of[node], n = polish->affinity->nodes;

	polish->inside += towards(polish, node)[to] - towards(polish, node)[from];
	for (uint32_t i = 0; i < n; i++) {
		double affinity = polish->affinity->of[(size_t)i * n + node];

		towards(polish, i)[from] -= affinity;
		towards(polish, i)[to] += affinity;
	}
	add_group(&polish->pattern, polish->sizes[from]--, -1);
	add_group(&polish->pattern, polish->sizes[to]++, -1);
	add_group(&polish->pattern, polish->sizes[from], 1);
	add_group(&polish->pattern, polish->sizes[to], 1);
	polish->grouping->group_of[node] = to;
}

/* The explained part if the node were in group `to`. */
static double if_moved(const struct polish *polish, uint32_t node, uint32_t to)
{
	uint32_t from = polish->grouping->group_of[node];
	struct pattern pattern = polish->pattern;

	add_group(&pattern, polish->sizes[from], -1);
	add_group(&pattern, polish->sizes[to], -1);
	add_group(&pattern, polish->sizes[from] - 1, 1);
	add_group(&pattern, polish->sizes[to] + 1, 1);
	return explained(polish->inside + towards(polish, node)[to] - towards(polish, node)[from], &pattern,
	                 polish->affinity->nodes);
}

static uint32_t sweep_moves(struct polish *polish)
{
	uint32_t moves = 0, count = polish->grouping->count;

	for (uint32_t node = 0; node < polish->affinity->nodes; node++) {
		double now = explained(polish->inside, &polish->pattern, polish->affinity->nodes),
		    best = now + PROGRESS * fabs(now);
		uint32_t from = polish->grouping->group_of[node], chosen = from;

		for (uint32_t to = 0; to < count && polish->sizes[from] > polish->least; to++) {
			double then = to == from ? now : if_moved(polish, node, to);

			if (then > best) {
				best = then;
				chosen = to;
			}
		}
		if (chosen != from) {
			move(polish, node, chosen);
			moves++;
		}
	}
	return moves;
}

/* Sizes stay, so an exchange is good if it increases the affinity inside. */
static uint32_t sweep_exchanges(struct polish *polish)
{
	uint32_t moves = 0, n = polish->affinity->nodes, *group_of = polish->grouping->group_of;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < i; j++) {
			uint32_t a = group_of[i], b = group_of[j];
			const double *x = towards(polish, i), *y = towards(polish, j);

			if (a == b || !(x[b] - x[a] + y[a] - y[b] - 2 * polish->affinity->of[(size_t)i * n + j] > PROGRESS *
			                fabs(polish->inside)))
				continue;
			move(polish, i, b);
			move(polish, j, a);
			moves++;
		}
	}
	return moves;
}

static enum esp_status renumber(struct grouping *grouping, struct error *err)
{
	struct grouping again;
	enum esp_status status = grouping_from(&again, grouping->group_of, grouping->nodes, err);

	if (status == ESP_OK) {
		grouping_fini(grouping);
		*grouping = again;
	}
	return status;
}

static uint32_t run_polish(struct polish *polish)
{
	uint32_t moves = 0, more = 1;

	begin_polish(polish);
	for (uint32_t sweep = 0; more > 0 && sweep < SWEEPS; sweep++) {
		more = sweep_moves(polish) + sweep_exchanges(polish);
		moves += more;
	}
	return moves;
}

enum esp_status discover_affinity_polish(const struct affinity *affinity, uint32_t least, struct grouping *grouping,
                                         uint32_t *out_moves, struct error *err)
{
	struct polish polish = {.affinity = affinity, .grouping = grouping, .least = least > 0 ? least : 1};
	bool is_worth = affinity->nodes >= AFFINITY_NODES_LEAST && grouping->count > 1;
	uint32_t moves = 0;
	enum esp_status status = ESP_OK;

	polish.sizes = calloc(grouping->count, sizeof(*polish.sizes));
	polish.towards = calloc((size_t)affinity->nodes * grouping->count, sizeof(*polish.towards));
	if (!polish.sizes || !polish.towards)
		status = error_set(err, ESP_ENOMEM, "no memory to polish the groups of %u nodes", affinity->nodes);
	else if (is_worth)
		moves = run_polish(&polish);
	if (status == ESP_OK && moves > 0)
		status = renumber(grouping, err);
	free(polish.sizes);
	free(polish.towards);
	if (status == ESP_OK && out_moves)
		*out_moves = moves;
	return status;
}
