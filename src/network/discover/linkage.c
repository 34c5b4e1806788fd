#include "network/discover/linkage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Clusters while they are joined, each named by its lowest node. */
struct clusters {
	struct matrix mean; /* between two clusters; on the diagonal: inside */
	uint32_t *size;     /* 0: joined to another one                     */
	uint32_t *near;     /* the nearest other cluster                     */
	uint32_t *live;     /* names of those that are left                  */
	uint32_t left;
};

static void clusters_fini(struct clusters *clusters)
{
	matrix_fini(&clusters->mean);
	free(clusters->size);
	free(clusters->near);
	free(clusters->live);
}

static enum esp_status clusters_init(struct clusters *clusters, const struct matrix *matrix, struct error *err)
{
	uint32_t n = matrix->size;

	*clusters = (struct clusters){.left = n};
	clusters->size = calloc(n, sizeof(*clusters->size));
	clusters->near = calloc(n, sizeof(*clusters->near));
	clusters->live = calloc(n, sizeof(*clusters->live));
	if (!clusters->size || !clusters->near || !clusters->live)
		return error_set(err, ESP_ENOMEM, "no memory to join %u hosts", n);
	for (uint32_t i = 0; i < n; i++) {
		clusters->size[i] = 1;
		clusters->live[i] = i;
	}
	return matrix_copy(&clusters->mean, matrix, err);
}

/* Of equals the one that stands first, unless `before` is as near. */
static uint32_t find_nearest(const struct clusters *clusters, uint32_t of, uint32_t before)
{
	const double *row = clusters->mean.at + (size_t)of * clusters->mean.size;
	uint32_t best = before;
	double least = before == UINT32_MAX ? INFINITY : row[before];

	for (uint32_t i = 0; i < clusters->left; i++) {
		uint32_t other = clusters->live[i];

		if (other != of && (row[other] < least || best == UINT32_MAX)) {
			least = row[other];
			best = other;
		}
	}
	return best;
}

static void leave(struct clusters *clusters, uint32_t gone)
{
	uint32_t at = 0;

	while (clusters->live[at] != gone)
		at++;
	clusters->left--;
	memmove(clusters->live + at, clusters->live + at + 1, (clusters->left - at) * sizeof(*clusters->live));
}

/* b becomes a part of a. */
static void join(struct clusters *clusters, uint32_t a, uint32_t b)
{
	uint32_t n = clusters->mean.size;
	double x = clusters->size[a], y = clusters->size[b];
	const double *to_a = clusters->mean.at + (size_t)a * n, *to_b = clusters->mean.at + (size_t)b * n;
	double pairs = (x + y) * (x + y - 1) / 2;
	double inside = (to_a[a] * x * (x - 1) / 2 + to_b[b] * y * (y - 1) / 2 + to_a[b] * x * y) / pairs;

	leave(clusters, b);
	for (uint32_t i = 0; i < clusters->left; i++) {
		uint32_t other = clusters->live[i];

		if (other != a)
			matrix_set(&clusters->mean, a, other, (x * to_a[other] + y * to_b[other]) / (x + y));
	}
	matrix_set(&clusters->mean, a, a, inside);
	clusters->size[a] += clusters->size[b];
	clusters->size[b] = 0;
}

static int compare_heights(const void *a, const void *b)
{
	const struct linkage_join *x = a, *y = b;

	if (x->height != y->height)
		return x->height < y->height ? -1 : 1;
	return (x->a > y->a) - (x->a < y->a);
}

/* A chain of nearest neighbours ends in two that are each other's; joining those changes no other such pair. */
static void join_all(struct clusters *clusters, uint32_t *chain, struct linkage_join *joins)
{
	uint32_t length = 0, count = 0;

	while (clusters->left > 1) {
		if (length == 0)
			chain[length++] = clusters->live[0];
		uint32_t last = chain[length - 1], before = length > 1 ? chain[length - 2] : UINT32_MAX;
		uint32_t next = find_nearest(clusters, last, before);

		if (next != before) {
			chain[length++] = next;
			continue;
		}
		uint32_t a = last < before ? last : before, b = last < before ? before : last;
		joins[count++] = (struct linkage_join){a, b, matrix_get(&clusters->mean, a, b)};
		join(clusters, a, b);
		length -= 2;
	}
}

/* Joins are found chain by chain. Sorted by height, a cluster may not be joined before its parts are. */
static void keep_order(struct linkage_join *joins, uint32_t count, double *height)
{
	for (uint32_t i = 0; i < count; i++) { /* as rounding may make a join a hair lower than one of its parts */
		joins[i].height = fmax(joins[i].height, fmax(height[joins[i].a], height[joins[i].b]) * (1 + 1e-12) + 1e-300);
		height[joins[i].a] = joins[i].height;
	}
	qsort(joins, count, sizeof(*joins), compare_heights);
}

enum esp_status discover_linkage_make(const struct matrix *matrix, struct linkage *out, struct error *err)
{
	uint32_t n = matrix->size, *chain = calloc((size_t)n + 1, sizeof(*chain));
	double *height = calloc(n, sizeof(*height));
	struct linkage linkage = {.nodes = n, .joins = calloc(n, sizeof(*linkage.joins))};
	struct clusters clusters = {0};
	enum esp_status status = ESP_ENOMEM;

	if (!chain || !height || !linkage.joins)
		(void)error_set(err, status, "no memory to join %u hosts", n);
	else
		status = clusters_init(&clusters, matrix, err);
	if (status == ESP_OK) {
		join_all(&clusters, chain, linkage.joins);
		keep_order(linkage.joins, n - 1, height);
		*out = linkage;
	} else {
		discover_linkage_fini(&linkage);
	}
	clusters_fini(&clusters);
	free(chain);
	free(height);
	return status;
}

void discover_linkage_fini(struct linkage *linkage)
{
	free(linkage->joins);
	*linkage = (struct linkage){0};
}

static uint32_t find_root(uint32_t *up, uint32_t node)
{
	for (; up[node] != node; node = up[node])
		up[node] = up[up[node]];
	return node;
}

enum esp_status discover_linkage_cut(const struct linkage *linkage, uint32_t groups, struct grouping *out,
                                     struct error *err)
{
	uint32_t n = linkage->nodes, *up = calloc(n, sizeof(*up));

	if (!up)
		return error_set(err, ESP_ENOMEM, "no memory for the groups of %u hosts", n);
	for (uint32_t i = 0; i < n; i++)
		up[i] = i;
	for (uint32_t i = 0; i < n - groups; i++)
		up[find_root(up, linkage->joins[i].b)] = find_root(up, linkage->joins[i].a);
	for (uint32_t i = 0; i < n; i++)
		up[i] = find_root(up, i);
	enum esp_status status = grouping_from(out, up, n, err);
	free(up);
	return status;
}

/* ---- how clearly clusters are apart ---- */

static double apart_of(const struct clusters *clusters, uint32_t cluster)
{
	double a = matrix_get(&clusters->mean, cluster, cluster),
	       b = matrix_get(&clusters->mean, cluster, clusters->near[cluster]);

	if (clusters->size[cluster] == 1 || a == b)
		return 0;
	return (b - a) / fmax(a, b) * clusters->size[cluster];
}

/* The neighbours that the join has moved. */
static void find_neighbours(struct clusters *clusters, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < clusters->left; i++) {
		uint32_t other = clusters->live[i], near = clusters->near[other];

		if (other == a || near == a || near == b)
			clusters->near[other] = find_nearest(clusters, other, UINT32_MAX);
	}
}

enum esp_status discover_linkage_apart(const struct linkage *linkage, const struct matrix *matrix, double *out_apart,
                                       struct error *err)
{
	uint32_t n = linkage->nodes;
	struct clusters clusters = {0};
	enum esp_status status = clusters_init(&clusters, matrix, err);

	memset(out_apart, 0, ((size_t)n + 1) * sizeof(*out_apart));
	for (uint32_t i = 0; i < n && status == ESP_OK; i++)
		clusters.near[i] = find_nearest(&clusters, i, UINT32_MAX);
	for (uint32_t i = 0; i + 1 < n && status == ESP_OK; i++) {
		join(&clusters, linkage->joins[i].a, linkage->joins[i].b);
		find_neighbours(&clusters, linkage->joins[i].a, linkage->joins[i].b);
		for (uint32_t c = 0; c < clusters.left && clusters.left > 1; c++)
			out_apart[clusters.left] += apart_of(&clusters, clusters.live[c]) / n;
	}
	clusters_fini(&clusters);
	return status;
}
