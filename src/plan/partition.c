#include "plan/partition.h"

#include <stdbool.h>
#include <stdlib.h>

struct item {
	uint64_t size;
	uint64_t index;
};

static int item_order(const void *left, const void *right)
{
	const struct item *a = left;
	const struct item *b = right;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->index < b->index ? -1 : 1; /* makes qsort stable */
}

static bool all_equal(const uint64_t *values, uint64_t count)
{
	for (uint64_t i = 1; i < count; i++)
		if (values[i] != values[0])
			return false;
	return true;
}

static bool sum_fits(const uint64_t *sizes, uint64_t count)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < count; i++)
		if (__builtin_add_overflow(sum, sizes[i], &sum))
			return false;
	return true;
}

/* The items largest first; NULL if there is no memory. */
static struct item *items_sorted(const uint64_t *sizes, uint64_t count)
{
	struct item *items = calloc(count, sizeof *items);
	if (!items)
		return NULL;
	for (uint64_t i = 0; i < count; i++)
		items[i] = (struct item){sizes[i], i};
	if (!all_equal(sizes, count))
		qsort(items, count, sizeof *items, item_order);
	return items;
}

/*
 * Equal weights: the least loaded bin is on top of a heap, so the key of a bin does not
 * depend on the item that is placed.
 */
struct heap {
	uint32_t *bins;  /* heap of bin numbers, least loaded first */
	uint64_t *loads; /* by bin number */
	uint32_t count;
};

static bool heap_before(const struct heap *heap, uint32_t a, uint32_t b)
{
	if (heap->loads[a] != heap->loads[b])
		return heap->loads[a] < heap->loads[b];
	return a < b;
}

/* The top has grown: let it sink to its place. */
static void heap_sink(struct heap *heap)
{
	uint64_t at = 0;
	for (;;) {
		uint64_t least = at;
		for (uint64_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < heap->count && heap_before(heap, heap->bins[child], heap->bins[least]))
				least = child;
		if (least == at)
			return;
		uint32_t bin = heap->bins[at];
		heap->bins[at] = heap->bins[least];
		heap->bins[least] = bin;
		at = least;
	}
}

static void place_equal(const struct item *items, uint64_t count, uint64_t *loads, uint32_t *heap_bins, uint32_t bins,
                        uint32_t *out_bin)
{
	struct heap heap = {heap_bins, loads, bins};
	for (uint32_t bin = 0; bin < bins; bin++)
		heap.bins[bin] = bin; /* all loads are 0: in order is a heap */
	for (uint64_t i = 0; i < count; i++) {
		uint32_t bin = heap.bins[0];
		loads[bin] += items[i].size;
		out_bin[items[i].index] = bin;
		heap_sink(&heap);
	}
}

/* end_a / weight_a < end_b / weight_b, without division or overflow. A weight_a of 0 never wins. */
static bool finishes_before(uint64_t end_a, uint64_t weight_a, uint64_t end_b, uint64_t weight_b)
{
	return (unsigned __int128)end_a * weight_b < (unsigned __int128)end_b * weight_a;
}

static void place_weighted(const struct item *items, uint64_t count, uint64_t *loads, const uint64_t *weights,
                           uint32_t bins, uint32_t first_bin, uint32_t *out_bin)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t size = items[i].size;
		uint32_t best = first_bin;
		for (uint32_t bin = first_bin + 1; bin < bins; bin++)
			if (finishes_before(loads[bin] + size, weights[bin], loads[best] + size, weights[best]))
				best = bin;
		loads[best] += size;
		out_bin[items[i].index] = best;
	}
}

enum esp_status plan_partition_lpt(const uint64_t *sizes, uint64_t count, const uint64_t *weights, uint32_t bins,
                                   uint32_t *out_bin)
{
	uint32_t first_bin = 0; /* the first one that may be used */
	while (weights && first_bin < bins && weights[first_bin] == 0)
		first_bin++;
	if (first_bin >= bins)
		return ESP_EINVAL;
	if (!sum_fits(sizes, count))
		return ESP_ELIMIT;
	if (count == 0)
		return ESP_OK;

	struct item *items = items_sorted(sizes, count);
	uint64_t *loads = calloc(bins, sizeof *loads);
	uint32_t *heap_bins = calloc(bins, sizeof *heap_bins);
	enum esp_status status = ESP_ENOMEM;
	if (!items || !loads || !heap_bins)
		goto free_all;
	if (!weights || all_equal(weights, bins))
		place_equal(items, count, loads, heap_bins, bins, out_bin);
	else
		place_weighted(items, count, loads, weights, bins, first_bin, out_bin);
	status = ESP_OK;
free_all:
	free(heap_bins);
	free(loads);
	free(items);
	return status;
}
