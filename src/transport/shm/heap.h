/*
 * heap.h - which pages of a row of pages are taken. Private to shm.
 *
 * Pure: knows numbers, no memory. Ranges that are taken are kept in order; what lies between
 * them is free, so ranges that are given back grow together by themselves. First fit. The
 * caller sees to it that one thread at a time uses it.
 */
#ifndef TRANSPORT_SHM_HEAP_H
#define TRANSPORT_SHM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct heap_range {
	uint64_t first, pages;
	bool is_kept; /* shm_heap_keep() */
};

struct heap {
	uint64_t pages;
	struct heap_range *ranges; /* taken, in order */
	uint32_t count;
	size_t capacity;
};

void shm_heap_init(struct heap *heap, uint64_t pages);
void shm_heap_fini(struct heap *heap); /* zeroed is fine */

/*
 * pages > 0; *out_first comes `after` pages after a multiple of align. False: there is no room, or no memory to
 * remember it.
 */
ESP_CHECKED bool shm_heap_take(struct heap *heap, uint64_t pages, uint64_t align, uint64_t after, uint64_t *out_first);
/* How many pages were taken at first; 0: none. */
uint64_t shm_heap_taken(const struct heap *heap, uint64_t first);
/* Takes up to `most` free pages before what was taken at first along; returns where that begins now. */
uint64_t shm_heap_reach_back(struct heap *heap, uint64_t first, uint64_t most);
/* Marks it, or no more. False: nothing taken begins there. */
bool shm_heap_keep(struct heap *heap, uint64_t first, bool is_kept);
bool shm_heap_is_kept(const struct heap *heap, uint64_t first);
/* Something taken begins at first. */
void shm_heap_give(struct heap *heap, uint64_t first);

#endif
