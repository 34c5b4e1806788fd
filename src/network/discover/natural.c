#include "network/discover/natural.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "network/discover/linkage.h"
#include "network/discover/swaps.h"

#define KEPT 8u        /* numbers of groups that stand out, at most */
#define HALF 0.5       /* of the clearest: what is less clearly apart does not count */
#define ABOUT 0.8      /* of the clearest: then what a plan costs decides */
#define NEAR 1.05      /* costs that differ by less are equal */
#define SHUFFLES 8u    /* of the distances, for the noise; with many hosts each tells more */
#define SHUFFLES_MANY 3u
#define SHUFFLES_MOST 1u
#define MANY_NODES 256u
#define MOST_NODES 1024u
#define BEYOND 1.2     /* times what noise saves, and so many deviations above it */
#define DEVIATIONS 6.0
#define WORTH 0.05     /* of the time: what saves less is no use, however clear it is */

const char *discover_natural_source_text(enum natural_source source)
{
	static const char *const texts[] = {
		[NATURAL_KMEANS] = "k-means", [NATURAL_LINKAGE] = "average linkage", [NATURAL_RANDOM] = "a random start"};

	return texts[source];
}

/* ---- what a grouping is worth ---- */

/* Sums of distances between two groups, and their sizes. */
struct blocks {
	uint32_t groups, nodes;
	double *sum;      /* groups * groups; each pair of a group counts twice within it */
	uint32_t *sizes;
};

static void blocks_fini(struct blocks *blocks)
{
	free(blocks->sum);
	free(blocks->sizes);
}

static enum esp_status blocks_init(struct blocks *blocks, const struct matrix *matrix,
                                   const struct grouping *grouping, struct error *err)
{
	uint32_t k = grouping->count, n = grouping->nodes;

	*blocks = (struct blocks){.groups = k, .nodes = n};
	blocks->sum = calloc((size_t)k * k, sizeof(*blocks->sum));
	blocks->sizes = calloc(k, sizeof(*blocks->sizes));
	if (!blocks->sum || !blocks->sizes)
		return error_set(err, ESP_ENOMEM, "no memory for %u groups", k);
	grouping_sizes(grouping, blocks->sizes);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t own = grouping->group_of[i];
		double *sum = blocks->sum + (size_t)own * k;

		for (uint32_t j = 0; j < n; j++)
			sum[grouping->group_of[j]] += matrix_get(matrix, i, j);
	}
	return ESP_OK;
}

static double mean_between(const struct blocks *blocks, uint32_t a, uint32_t b)
{
	double x = blocks->sizes[a], y = blocks->sizes[b], pairs = a == b ? x * (x - 1) : x * y;

	return pairs > 0 ? blocks->sum[(size_t)a * blocks->groups + b] / pairs : 0;
}

/*
 * Every host sends its group's other hosts their shares, and its own share, one of as many as the group has hosts, to
 * the other groups: (s - 1) / s of the buffer inside, and 1 / s of it, less what belongs to the own group, outside. How
 * far outside is: on the usual scale of a few orders of magnitude, by the mean of the logarithms of the groups' means,
 * so that one uplink that others fill does not decide for all.
 */
static double cost_of(const struct blocks *blocks, uint32_t group)
{
	double size = blocks->sizes[group], outside = blocks->nodes - size, logs = 0;

	for (uint32_t other = 0; other < blocks->groups; other++)
		if (other != group)
			logs += blocks->sizes[other] * log(fmax(mean_between(blocks, group, other), 1e-300));
	double far = outside > 0 ? exp(logs / outside) * outside / blocks->nodes : 0;
	return (size - 1) / size * mean_between(blocks, group, group) + far / size;
}

static double apart_of(const struct blocks *blocks, uint32_t group)
{
	double inside = mean_between(blocks, group, group), next = INFINITY;

	for (uint32_t other = 0; other < blocks->groups; other++)
		if (other != group)
			next = fmin(next, mean_between(blocks, group, other));
	if (blocks->sizes[group] == 1 || !isfinite(next) || inside == next)
		return 0;
	return (next - inside) / fmax(next, inside);
}

enum esp_status discover_natural_judge(const struct matrix *matrix, const struct grouping *grouping, double *out_cost,
                                       double *out_apart, struct error *err)
{
	struct blocks blocks;
	enum esp_status status = blocks_init(&blocks, matrix, grouping, err);

	*out_cost = *out_apart = 0;
	for (uint32_t group = 0; group < grouping->count && status == ESP_OK; group++) {
		*out_cost += cost_of(&blocks, group) * blocks.sizes[group] / blocks.nodes;
		*out_apart += apart_of(&blocks, group) * blocks.sizes[group] / blocks.nodes;
	}
	blocks_fini(&blocks);
	return status;
}

/* ---- the list ---- */

/* Takes the grouping over, unless an equal one is there. */
static enum esp_status keep(struct naturals *naturals, const struct matrix *matrix, struct grouping *grouping,
                            enum natural_source source, bool polished, struct error *err)
{
	struct natural *list = naturals->list;

	for (uint32_t i = 0; i < naturals->count; i++)
		if (grouping_equal(&list[i].grouping, grouping))
			return ESP_OK;
	list = realloc(naturals->list, (naturals->count + 1) * sizeof(*list));
	if (!list)
		return error_set(err, ESP_ENOMEM, "no memory for groupings");
	naturals->list = list;
	struct natural *new = &list[naturals->count];
	*new = (struct natural){.grouping = *grouping, .source = source, .polished = polished};
	naturals->count++;
	*grouping = (struct grouping){0};
	return discover_natural_judge(matrix, &new->grouping, &new->cost, &new->apart, err);
}

enum esp_status discover_natural_add(struct naturals *naturals, const struct matrix *matrix,
                                     const struct grouping *grouping, enum natural_source source, struct error *err)
{
	const struct swaps_bounds any = discover_swaps_bounds(grouping->nodes, grouping->count, 0);
	struct grouping copy = {0}, better = {0};
	enum esp_status status = grouping_from(&copy, grouping->group_of, grouping->nodes, err);

	if (status == ESP_OK)
		status = grouping_from(&better, grouping->group_of, grouping->nodes, err);
	if (status == ESP_OK)
		status = keep(naturals, matrix, &copy, source, false, err);
	if (status == ESP_OK && grouping->count > 1)
		status = discover_swaps_polish(matrix, any, &better, err);
	if (status == ESP_OK && better.count == grouping->count)
		status = keep(naturals, matrix, &better, source, true, err);
	grouping_fini(&copy);
	grouping_fini(&better);
	return status;
}

void discover_natural_fini(struct naturals *naturals)
{
	for (uint32_t i = 0; i < naturals->count; i++)
		grouping_fini(&naturals->list[i].grouping);
	free(naturals->list);
	*naturals = (struct naturals){0};
}

/* ---- numbers of groups that stand out ---- */

/* apart[groups]: the clearest local maxima, the clearest first. Returns their number. */
static uint32_t find_peaks(const double *apart, uint32_t nodes, uint32_t *out)
{
	uint32_t count = 0;

	for (uint32_t k = 2; k <= nodes / 2; k++) {
		if (!(apart[k] > 0 && (k == 2 || apart[k] >= apart[k - 1]) && apart[k] >= apart[k + 1]))
			continue;
		if (count == KEPT && apart[k] <= apart[out[count - 1]])
			continue;
		uint32_t at = count < KEPT ? count++ : count - 1;
		for (; at > 0 && apart[k] > apart[out[at - 1]]; at--)
			out[at] = out[at - 1];
		out[at] = k;
	}
	while (count > 1 && apart[out[count - 1]] < HALF * apart[out[0]])
		count--;
	return count;
}

static enum esp_status add_peaks(const struct matrix *matrix, struct naturals *out, struct error *err)
{
	uint32_t n = matrix->size, peaks[KEPT], count;
	double *apart = calloc((size_t)n + 2, sizeof(*apart));
	struct linkage linkage = {0};
	enum esp_status status = apart ? discover_linkage_make(matrix, &linkage, err)
	                               : error_set(err, ESP_ENOMEM, "no memory for %u hosts", n);

	if (status == ESP_OK)
		status = discover_linkage_apart(&linkage, matrix, apart, err);
	count = status == ESP_OK ? find_peaks(apart, n, peaks) : 0;
	for (uint32_t i = 0; i < count && status == ESP_OK; i++) {
		struct grouping cut = {0};

		status = discover_linkage_cut(&linkage, peaks[i], &cut, err);
		if (status == ESP_OK)
			status = discover_natural_add(out, matrix, &cut, NATURAL_LINKAGE, err);
		grouping_fini(&cut);
	}
	discover_linkage_fini(&linkage);
	free(apart);
	return status;
}

static enum esp_status make_one(const struct matrix *matrix, struct naturals *out, struct error *err)
{
	struct grouping one = {0};
	enum esp_status status = grouping_init(&one, matrix->size, err);

	if (status == ESP_OK)
		status = keep(out, matrix, &one, NATURAL_LINKAGE, false, err);
	grouping_fini(&one);
	return status;
}

enum esp_status discover_natural_make(const struct matrix *matrix, struct naturals *out, struct error *err)
{
	*out = (struct naturals){0};
	enum esp_status status = make_one(matrix, out, err);

	if (status == ESP_OK)
		status = add_peaks(matrix, out, err);
	if (status != ESP_OK)
		discover_natural_fini(out);
	return status;
}

/* ---- noise ---- */

/* Deals the distances to the pairs anew. */
static void shuffle(struct matrix *matrix, struct rng *rng)
{
	uint32_t n = matrix->size;

	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			uint64_t other = rng_below(rng, (uint64_t)i * (i - 1) / 2 + j + 1);
			uint32_t a = (uint32_t)((1 + sqrt(1 + 8 * (double)other)) / 2);

			a -= (uint64_t)a * (a - 1) / 2 > other;
			uint32_t b = (uint32_t)(other - (uint64_t)a * (a - 1) / 2);
			double mine = matrix_get(matrix, i, j);
			matrix_set(matrix, i, j, matrix_get(matrix, a, b));
			matrix_set(matrix, a, b, mine);
		}
}

/* The share that the best grouping of so many groups saves. */
static enum esp_status save_most(const struct matrix *matrix, uint32_t groups, double *out, struct error *err)
{
	struct linkage linkage = {0};
	struct grouping cut = {0};
	struct naturals found = {0};
	enum esp_status status = make_one(matrix, &found, err);

	if (status == ESP_OK)
		status = discover_linkage_make(matrix, &linkage, err);
	if (status == ESP_OK)
		status = discover_linkage_cut(&linkage, groups, &cut, err);
	if (status == ESP_OK)
		status = discover_natural_add(&found, matrix, &cut, NATURAL_LINKAGE, err);
	*out = 0;
	for (uint32_t i = 1; i < found.count && status == ESP_OK; i++)
		*out = fmax(*out, discover_natural_saves(&found, i));
	discover_linkage_fini(&linkage);
	grouping_fini(&cut);
	discover_natural_fini(&found);
	return status;
}

enum esp_status discover_natural_weigh(const struct matrix *matrix, uint32_t groups, uint64_t seed,
                                       struct naturals *naturals, struct error *err)
{
	uint32_t n = matrix->size,
	    times = n > MOST_NODES ? SHUFFLES_MOST : n > MANY_NODES ? SHUFFLES_MANY : SHUFFLES;
	double sum = 0, squares = 0, saves = 0;
	struct matrix dealt = {0};
	struct rng rng;
	enum esp_status status = matrix_copy(&dealt, matrix, err);

	naturals->noise_most = 0;
	rng_init(&rng, seed);
	for (uint32_t i = 0; i < times && status == ESP_OK; i++) {
		shuffle(&dealt, &rng);
		status = save_most(&dealt, groups, &saves, err);
		sum += saves;
		squares += saves * saves;
		naturals->noise_most = fmax(naturals->noise_most, saves);
	}
	matrix_fini(&dealt);
	double mean = sum / times, variance = fmax(0, squares / times - mean * mean);
	naturals->noise_saves = mean;
	naturals->noise_bar = fmax(mean * BEYOND, mean + DEVIATIONS * sqrt(variance));
	return status;
}

/* ---- the choice ---- */

uint32_t discover_natural_pick(const struct naturals *naturals)
{
	double clearest = 0, least = naturals->list[0].cost;
	uint32_t best = 0;

	for (uint32_t i = 1; i < naturals->count; i++)
		clearest = fmax(clearest, naturals->list[i].apart);
	for (uint32_t i = 1; i < naturals->count; i++)
		if (naturals->list[i].apart >= ABOUT * clearest)
			least = fmin(least, naturals->list[i].cost);
	for (uint32_t i = 0; i < naturals->count; i++) {
		const struct natural *each = &naturals->list[i];

		if ((i == 0 || each->apart >= ABOUT * clearest) && each->cost <= NEAR * least &&
		    (each->apart > naturals->list[best].apart || naturals->list[best].cost > NEAR * least))
			best = i;
	}
	return best;
}

double discover_natural_saves(const struct naturals *naturals, uint32_t index)
{
	double none = naturals->list[0].cost;

	return none > 0 ? 1 - naturals->list[index].cost / none : 0;
}

bool discover_natural_stands(const struct naturals *naturals, uint32_t index)
{
	double saves = discover_natural_saves(naturals, index);

	return index > 0 && saves > naturals->noise_bar && saves >= WORTH;
}

bool discover_natural_hints(const struct naturals *naturals, uint32_t index)
{
	double saves = discover_natural_saves(naturals, index);

	return index > 0 && saves > naturals->noise_most && saves >= WORTH;
}
