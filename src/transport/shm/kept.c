/*
 * kept.c - memory of a heap that outlives its segment.
 *
 * Segments some of whose memory was kept are in a list of the process, so that it can be freed by a caller that does
 * not know whether the segment is still there. When the segment goes, kept memory becomes private (a peer that thaws
 * late may still store into the pages that it shares with us), the rest is unmapped, and the segment stays in the list
 * until the last piece was freed.
 *
 * Kept memory is used like any other, so a child made by fork() may write to it: that must not reach its parent.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "transport/shm/parts.h"
#include "transport/shm/segment.h"

static struct {
	pthread_mutex_t lock; /* taken before that of a segment */
	struct segment *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define STEP (UINT64_C(8) << 20) /* so much is there twice */

static uint64_t place_of(const struct segment *segment, const struct heap_range *range)
{
	return segment->layout.heap_at + range->first * segment->layout.page;
}

/* ---- children ---- */

void shm_kept_before_fork(void)
{
	pthread_mutex_lock(&kept.lock);
	for (struct segment *segment = kept.first; segment; segment = segment->next_kept)
		pthread_mutex_lock(&segment->lock);
}

void shm_kept_in_parent(void)
{
	for (struct segment *segment = kept.first; segment; segment = segment->next_kept)
		pthread_mutex_unlock(&segment->lock);
	pthread_mutex_unlock(&kept.lock);
}

/* The child's writes there are its own from now on. Withdrawn pages are private already. */
static void part_from_parent(const struct segment *segment, uint64_t at, uint64_t bytes)
{
	uint64_t step = shm_segment_withdrawn_in(segment, at, bytes) ? segment->layout.page : bytes;

	for (uint64_t end = at + bytes; at < end; at += step)
		if (!shm_segment_withdrawn_in(segment, at, step))
			(void)mmap(segment->base + at, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
			           segment->fd, (off_t)at);
}

/* The segments in the list are the parent's. */
void shm_kept_in_child(void)
{
	for (struct segment *segment = kept.first; segment; segment = segment->next_kept) {
		for (uint32_t i = 0; i < segment->heap.count && !segment->is_gone; i++) {
			const struct heap_range *range = &segment->heap.ranges[i];

			if (range->is_kept)
				part_from_parent(segment, place_of(segment, range), range->pages * segment->layout.page);
		}
	}
	shm_kept_in_parent();
	kept.first = NULL;
}

/* The number of the page where it begins in the heap; false: in no page, or not in the heap. */
static bool page_of(const struct segment *segment, const void *memory, uint64_t *out_page)
{
	uintptr_t heap = (uintptr_t)segment->base + segment->layout.heap_at, at = (uintptr_t)memory;

	if (at < heap || at - heap >= segment->layout.heap_bytes || (at - heap) % segment->layout.page != 0)
		return false;
	*out_page = (at - heap) / segment->layout.page;
	return true;
}

bool shm_segment_keep(struct segment *segment, void *memory)
{
	uint64_t page;

	pthread_mutex_lock(&kept.lock);
	pthread_mutex_lock(&segment->lock);
	bool is_kept = page_of(segment, memory, &page) && shm_heap_keep(&segment->heap, page, true);
	pthread_mutex_unlock(&segment->lock);
	if (is_kept && !segment->has_kept) {
		segment->has_kept = true;
		segment->next_kept = kept.first;
		kept.first = segment;
	}
	pthread_mutex_unlock(&kept.lock);
	return is_kept;
}

static void unlist(struct segment *segment)
{
	struct segment **at = &kept.first;

	while (*at != segment)
		at = &(*at)->next_kept;
	*at = segment->next_kept;
}

/* ---- when the segment goes ---- */

static void unmap(const struct segment *segment, uint64_t from, uint64_t end)
{
	if (from < end)
		munmap(segment->base + from, end - from);
}

/* Peers need it no longer: what we have sent has been consumed, or is revoked. */
static void make_private(struct segment *segment, uint64_t at, uint64_t bytes)
{
	for (uint64_t end = at + bytes; at < end; at += STEP) {
		uint64_t step = end - at < STEP ? end - at : STEP;

		/* Without memory for that it stays shared: then it is at least still there. */
		if (shm_segment_withdraw(segment, segment->base + at, step))
			(void)shm_segment_release(segment, at, step);
	}
}

/* Only what was kept stays: in the list of what is taken, and mapped. */
static void shed(struct segment *segment)
{
	const struct layout *layout = &segment->layout;
	struct heap *heap = &segment->heap;
	uint64_t end = 0; /* of what stays so far */
	uint32_t count = 0;

	for (uint32_t i = 0; i < heap->count; i++) {
		struct heap_range range = heap->ranges[i];
		uint64_t at = place_of(segment, &range), bytes = range.pages * layout->page;

		if (!range.is_kept)
			continue;
		make_private(segment, at, bytes);
		unmap(segment, end, at);
		end = at + bytes;
		heap->ranges[count++] = range;
	}
	unmap(segment, end, layout->bytes);
	heap->count = count;
}

bool shm_kept_remains(struct segment *segment)
{
	bool remains = false;

	pthread_mutex_lock(&kept.lock);
	for (uint32_t i = 0; i < segment->heap.count; i++)
		remains = remains || segment->heap.ranges[i].is_kept;
	if (remains) {
		shed(segment);
		shm_segment_close_files(segment);
		segment->is_gone = true;
	} else {
		unlist(segment);
	}
	pthread_mutex_unlock(&kept.lock);
	return remains;
}

/* ---- freeing ---- */

/* With kept.lock held, of a segment that has gone. The last piece takes the rest along. */
static void free_remains(struct segment *segment, void *memory, uint64_t page)
{
	munmap(memory, shm_heap_taken(&segment->heap, page) * segment->layout.page);
	shm_heap_give(&segment->heap, page);
	if (segment->heap.count > 0)
		return;
	unlist(segment);
	shm_segment_dispose(segment);
}

/* Addresses of a segment that has gone may be those of another by now, so all are asked. */
static struct segment *owner_of(const void *memory, uint64_t *out_page)
{
	for (struct segment *segment = kept.first; segment; segment = segment->next_kept) {
		if (!page_of(segment, memory, out_page))
			continue;
		pthread_mutex_lock(&segment->lock);
		bool is_kept = shm_heap_is_kept(&segment->heap, *out_page);
		pthread_mutex_unlock(&segment->lock);
		if (is_kept)
			return segment;
	}
	return NULL;
}

bool shm_segment_free_kept(void *memory)
{
	uint64_t page;

	pthread_mutex_lock(&kept.lock);
	struct segment *segment = owner_of(memory, &page);
	bool is_freed = segment != NULL;
	if (segment && segment->is_gone)
		free_remains(segment, memory, page);
	else if (segment)
		is_freed = shm_segment_free(segment, memory);
	pthread_mutex_unlock(&kept.lock);
	return is_freed;
}
