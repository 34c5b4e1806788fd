#include "transport/shm/heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void shm_heap_init(struct heap *heap, uint64_t pages)
{
	*heap = (struct heap){.pages = pages};
}

void shm_heap_fini(struct heap *heap)
{
	free(heap->ranges);
	*heap = (struct heap){0};
}

/* Does it fit between first and end? */
static bool fits(uint64_t first, uint64_t end, uint64_t pages)
{
	return first <= end && end - first >= pages;
}

bool shm_heap_take(struct heap *heap, uint64_t pages, uint64_t align, uint64_t after, uint64_t *out_first)
{
	uint64_t first = after;
	uint32_t at = 0;

	while (at < heap->count && !fits(first, heap->ranges[at].first, pages)) {
		uint64_t end = heap->ranges[at].first + heap->ranges[at].pages;

		if (end > first)
			first += (end - first + align - 1) / align * align;
		at++;
	}
	if (!fits(first, heap->pages, pages) ||
	    !vec_reserve(&heap->ranges, &heap->capacity, (size_t)heap->count + 1, sizeof(*heap->ranges)))
		return false;
	memmove(heap->ranges + at + 1, heap->ranges + at, (heap->count - at) * sizeof(*heap->ranges));
	heap->ranges[at] = (struct heap_range){.first = first, .pages = pages};
	heap->count++;
	*out_first = first;
	return true;
}

/* The number of ranges that begin before. */
static uint32_t place_of(const struct heap *heap, uint64_t first)
{
	uint32_t low = 0, high = heap->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (heap->ranges[middle].first < first)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t shm_heap_taken(const struct heap *heap, uint64_t first)
{
	uint32_t at = place_of(heap, first);

	return at < heap->count && heap->ranges[at].first == first ? heap->ranges[at].pages : 0;
}

uint64_t shm_heap_reach_back(struct heap *heap, uint64_t first, uint64_t most)
{
	uint32_t at = place_of(heap, first);
	uint64_t free_from = at > 0 ? heap->ranges[at - 1].first + heap->ranges[at - 1].pages : 0;
	uint64_t more = first - free_from < most ? first - free_from : most;

	assert(at < heap->count && heap->ranges[at].first == first);
	heap->ranges[at].first -= more;
	heap->ranges[at].pages += more;
	return first - more;
}

bool shm_heap_keep(struct heap *heap, uint64_t first, bool is_kept)
{
	if (shm_heap_taken(heap, first) == 0)
		return false;
	heap->ranges[place_of(heap, first)].is_kept = is_kept;
	return true;
}

bool shm_heap_is_kept(const struct heap *heap, uint64_t first)
{
	return shm_heap_taken(heap, first) > 0 && heap->ranges[place_of(heap, first)].is_kept;
}

void shm_heap_give(struct heap *heap, uint64_t first)
{
	uint32_t at = place_of(heap, first);

	assert(at < heap->count && heap->ranges[at].first == first);
	heap->count--;
	memmove(heap->ranges + at, heap->ranges + at + 1, (heap->count - at) * sizeof(*heap->ranges));
}
