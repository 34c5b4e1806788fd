#include "network/discover/swaps.h"

#include <math.h>
#include <stdlib.h>

#define SWEEPS 60u      /* most passes over all hosts; a few are usual */
#define PROGRESS 1e-9   /* of the sum inside: less is rounding */

/* A search that is under way. */
struct search {
	const struct matrix *matrix;
	struct grouping *grouping;
	struct swaps_bounds bounds;
	uint32_t *sizes;
	double *towards; /* nodes * groups: the summed distance of a host to the hosts of a group */
	double inside;   /* the sum over the pairs within groups, and how many there are */
	double pairs;
};

struct swaps_bounds discover_swaps_bounds(uint32_t nodes, uint32_t groups, double elasticity)
{
	double mean = (double)nodes / groups, least = floor(mean / elasticity), most = ceil(mean * elasticity);

	if (elasticity == 0)
		return (struct swaps_bounds){1, nodes};
	return (struct swaps_bounds){least < 1 ? 1 : (uint32_t)least, most > nodes ? nodes : (uint32_t)most};
}

double discover_swaps_inside(const struct matrix *matrix, const struct grouping *grouping)
{
	double sum = 0, pairs = 0;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++)
			if (grouping->group_of[i] == grouping->group_of[j]) {
				sum += matrix_get(matrix, i, j);
				pairs++;
			}
	return pairs > 0 ? sum / pairs : 0;
}

static double *towards(const struct search *search, uint32_t node)
{
	return search->towards + (size_t)node * search->grouping->count;
}

static enum esp_status search_init(struct search *search, const struct matrix *matrix, struct swaps_bounds bounds,
                                   struct grouping *grouping, struct error *err)
{
	uint32_t n = grouping->nodes;

	*search = (struct search){.matrix = matrix, .grouping = grouping, .bounds = bounds};
	search->sizes = calloc(grouping->count, sizeof(*search->sizes));
	search->towards = calloc((size_t)n * grouping->count, sizeof(*search->towards));
	if (!search->sizes || !search->towards)
		return error_set(err, ESP_ENOMEM, "no memory to polish the groups of %u hosts", n);
	grouping_sizes(grouping, search->sizes);
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++)
			towards(search, i)[grouping->group_of[j]] += matrix_get(matrix, i, j);
		search->inside += towards(search, i)[grouping->group_of[i]] / 2;
	}
	for (uint32_t group = 0; group < grouping->count; group++)
		search->pairs += search->sizes[group] * (search->sizes[group] - 1.0) / 2;
	return ESP_OK;
}

static void search_fini(struct search *search)
{
	free(search->sizes);
	free(search->towards);
}

static void move(struct search *search, uint32_t node, uint32_t to)
{
	uint32_t from = search->grouping->group_of[node], n = search->grouping->nodes;

	search->inside += towards(search, node)[to] - towards(search, node)[from];
	for (uint32_t i = 0; i < n; i++) {
		double distance = matrix_get(search->matrix, node, i);

		towards(search, i)[from] -= distance;
		towards(search, i)[to] += distance;
	}
	search->pairs += search->sizes[to] - (search->sizes[from] - 1.0);
	search->sizes[from]--;
	search->sizes[to]++;
	search->grouping->group_of[node] = to;
}

/* The mean inside if the host were in another group. */
static double if_moved(const struct search *search, uint32_t node, uint32_t to)
{
	uint32_t from = search->grouping->group_of[node];
	double pairs = search->pairs + search->sizes[to] - (search->sizes[from] - 1.0);
	double inside = search->inside + towards(search, node)[to] - towards(search, node)[from];

	return pairs > 0 ? inside / pairs : INFINITY;
}

static uint32_t sweep_moves(struct search *search)
{
	uint32_t moves = 0;

	for (uint32_t node = 0; node < search->grouping->nodes; node++) {
		uint32_t from = search->grouping->group_of[node], chosen = from;
		double now = search->pairs > 0 ? search->inside / search->pairs : 0, best = now * (1 - PROGRESS);

		if (search->sizes[from] <= search->bounds.least)
			continue;
		for (uint32_t to = 0; to < search->grouping->count; to++) {
			double then = to != from && search->sizes[to] < search->bounds.most ? if_moved(search, node, to) : now;

			if (then < best) {
				best = then;
				chosen = to;
			}
		}
		if (chosen != from) {
			move(search, node, chosen);
			moves++;
		}
	}
	return moves;
}

static uint32_t sweep_swaps(struct search *search)
{
	uint32_t moves = 0, *group_of = search->grouping->group_of;

	for (uint32_t i = 0; i < search->grouping->nodes; i++) {
		const double *row = search->matrix->at + (size_t)i * search->matrix->size;

		for (uint32_t j = 0; j < i; j++) {
			uint32_t a = group_of[i], b = group_of[j];
			const double *x = towards(search, i), *y = towards(search, j);

			if (a == b || !(x[b] - x[a] + y[a] - y[b] - 2 * row[j] < -PROGRESS * search->inside))
				continue;
			move(search, i, b);
			move(search, j, a);
			moves++;
		}
	}
	return moves;
}

/* Numbers the groups anew: they are numbered by their lowest hosts. */
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

enum esp_status discover_swaps_polish(const struct matrix *matrix, struct swaps_bounds bounds,
                                      struct grouping *grouping, struct error *err)
{
	struct search search;
	enum esp_status status = search_init(&search, matrix, bounds, grouping, err);
	uint32_t more = grouping->count > 1;

	for (uint32_t sweep = 0; status == ESP_OK && more > 0 && sweep < SWEEPS; sweep++) {
		more = sweep_moves(&search);
		more += sweep_swaps(&search);
	}
	search_fini(&search);
	return status == ESP_OK ? renumber(grouping, err) : status;
}

/* ---- sizes ---- */

/* The host and its new group with the least mean distance; false: all sizes are within the bounds. */
static bool find_fit(const struct search *search, uint32_t *out_node, uint32_t *out_to)
{
	bool is_short = false, is_long = false, found = false;
	double least = INFINITY;

	for (uint32_t group = 0; group < search->grouping->count; group++) {
		is_long = is_long || search->sizes[group] > search->bounds.most;
		is_short = is_short || search->sizes[group] < search->bounds.least;
	}
	for (uint32_t node = 0; node < search->grouping->nodes && (is_long || is_short); node++) {
		uint32_t from = search->grouping->group_of[node];

		if (is_long ? search->sizes[from] <= search->bounds.most : search->sizes[from] <= search->bounds.least)
			continue;
		for (uint32_t to = 0; to < search->grouping->count; to++) {
			uint32_t room = is_long ? search->bounds.most : search->bounds.least;
			double then = to != from && search->sizes[to] < room ? if_moved(search, node, to) : INFINITY;

			if (then < least || (!found && then < INFINITY)) {
				least = then;
				*out_node = node;
				*out_to = to;
				found = true;
			}
		}
	}
	return found;
}

enum esp_status discover_swaps_fit(const struct matrix *matrix, struct swaps_bounds bounds, struct grouping *grouping,
                                   struct error *err)
{
	struct search search;
	uint32_t node = 0, to = 0;
	enum esp_status status = search_init(&search, matrix, bounds, grouping, err);

	while (status == ESP_OK && find_fit(&search, &node, &to))
		move(&search, node, to);
	search_fini(&search);
	return status == ESP_OK ? renumber(grouping, err) : status;
}
