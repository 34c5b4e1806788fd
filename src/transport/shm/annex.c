#include "transport/shm/annex.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SANITIZE_THREAD__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "transport/shm/parts.h"

struct gap {
	uint8_t *from, *end;
};

/*
 * Adopted memory is shared until fork() makes it private, for good: a child has the pages of the file as they were, so
 * no process may write to them again, and their place in the heap is not used for anything else. A region that a call
 * uses when the process forks stays until the call has ended; the child sees the call's writes meanwhile.
 */
struct annex {
	struct annex *next;
	struct segment *segment;
	uint8_t *memory, *end;       /* the caller's                                       */
	uint8_t *pages, *pages_end;  /* of it: those that are mapped from the file         */
	uint64_t at;                 /* in the segment: the page that the memory begins in */
	uint64_t first;              /* of the pages that are taken for it in the heap     */
	uint32_t uses;
	bool is_shared;              /* calls may run on its place in the heap      */
	bool is_mapped;              /* some of its pages may be mapped as shared   */
	bool was_forked;             /* a child may have its pages                  */
	struct gap *gaps;            /* pages that were withdrawn: they are private */
	uint32_t gap_count;
};

/*
 * Taken in this order, before kept.c's, and that before a segment's. The thread that moves pages, which may take
 * seconds, has `moving`; `lock` guards the lists and the use counts, and is held shortly: calls are started with it.
 */
static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment *annexed; /* segments that have adopted memory, or had some */

#define STEP (UINT64_C(64) << 20) /* so much is there twice while pages are moved */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint8_t *page_down(const struct segment *segment, const void *memory)
{
	return (uint8_t *)((uintptr_t)memory / segment->layout.page * segment->layout.page);
}

static uint8_t *page_up(const struct segment *segment, const void *memory)
{
	return page_down(segment, (const uint8_t *)memory + segment->layout.page - 1);
}

/* Where it lies in the segment. */
static uint64_t place_of(const struct annex *annex, const uint8_t *memory)
{
	return annex->at + (uint64_t)(memory - page_down(annex->segment, annex->memory));
}

/* ---- pages ---- */

/*
 * Is all of it private memory that may be written? Everything else is a file, shared on purpose, or the stack, which
 * grows.
 */
static bool is_private(const uint8_t *from, const uint8_t *end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	uintptr_t at = (uintptr_t)from;

	if (!maps)
		return false;
	while (at < (uintptr_t)end && fgets(line, sizeof(line), maps)) {
		uintptr_t begin, until;
		char may[5];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &until, may) != 3 || until <= at)
			continue; /* before it, or the end of a long line */
		if (begin > at || strcmp(may, "rw-p") != 0 || strstr(line, "[stack]"))
			break;
		at = until;
	}
	fclose(maps);
	return at >= (uintptr_t)end;
}

#ifdef __SANITIZE_THREAD__
/*
 * To ThreadSanitizer mmap() writes to what it maps; but the kernel does it at one instant, and others may go on reading
 * and writing there.
 */
#define mmap(...) ((void *)syscall(SYS_mmap, __VA_ARGS__))
#endif

/* Some pages of adopted memory come from the file from now on. */
static bool map_pages(const struct annex *annex, uint8_t *from, uint64_t bytes, int how)
{
	return mmap(from, bytes, PROT_READ | PROT_WRITE, how | MAP_FIXED | MAP_NORESERVE, annex->segment->fd,
	            (off_t)place_of(annex, from)) == from;
}

/* Each step is in the heap before it is the caller's. *out_end: so far it went. False: not to the end. */
static bool move_in(const struct annex *annex, uint8_t **out_end)
{
	struct segment *segment = annex->segment;

	for (uint8_t *from = annex->pages; from < annex->pages_end; from = *out_end) {
		uint64_t left = (uint64_t)(annex->pages_end - from), at = place_of(annex, from), most = STEP - at % HUGE_PAGE;
		uint64_t step = left < most ? left : most;

		*out_end = from;
		shm_segment_use_huge_pages(segment, at, step);
		if (!shm_segment_reserve(segment, at, step))
			return false;
		memcpy(segment->base + at, from, step);
		if (!map_pages(annex, from, step, MAP_SHARED))
			return false;
		(void)madvise(from, step, MADV_HUGEPAGE);
		(void)madvise(from, step, MADV_POPULATE_WRITE); /* otherwise page by page, when they are used */
		*out_end = from + step;
	}
	return true;
}

/* Private memory takes the place of pages, with their content. */
static bool replace_pages(uint8_t *from, uint64_t bytes)
{
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, from, bytes);
	if (shm_segment_move_pages(copy, bytes, from))
		return true;
	munmap(copy, bytes);
	return false;
}

/* ---- what was withdrawn of it ---- */

static bool has_withdrawn(const struct annex *annex, const uint8_t *from, uint64_t bytes)
{
	for (uint32_t i = 0; i < annex->gap_count; i++)
		if (annex->gaps[i].from < from + bytes && from < annex->gaps[i].end)
			return true;
	return false;
}

/*
 * The next pages, from *from on, that were not: those are private already, and the file has others in their place.
 * False: there are no more.
 */
static bool next_run(const struct annex *annex, uint8_t **from, uint8_t **out_end)
{
	uint8_t *at = *from;

	for (uint32_t i = 0; i < annex->gap_count; i++) {
		if (annex->gaps[i].from <= at && at < annex->gaps[i].end) {
			at = annex->gaps[i].end;
			i = UINT32_MAX; /* from the first again */
		}
	}
	if (at >= annex->pages_end)
		return false;
	uint8_t *end = (uint64_t)(annex->pages_end - at) < STEP ? annex->pages_end : at + STEP;
	for (uint32_t i = 0; i < annex->gap_count; i++)
		if (annex->gaps[i].from > at && annex->gaps[i].from < end)
			end = annex->gaps[i].from;
	*from = at;
	*out_end = end;
	return true;
}

static bool add_gap(struct annex *annex, uint8_t *from, uint8_t *end)
{
	struct gap *more = reallocarray(annex->gaps, annex->gap_count + 1, sizeof(*more));

	if (!more)
		return false;
	annex->gaps = more;
	annex->gaps[annex->gap_count++] = (struct gap){from, end};
	return true;
}

/*
 * A call that has failed had offered these pages, and a peer that stores into them may go on late. No other call uses
 * them now.
 */
static bool withdraw(struct annex *annex, uint8_t *from, uint8_t *end)
{
	uint8_t *first = from > annex->pages ? from : annex->pages, *last = end < annex->pages_end ? end : annex->pages_end;

	if (!add_gap(annex, from, end))
		return false;
	if (first >= last || replace_pages(first, (uint64_t)(last - first))) /* head and tail are not mapped */
		return true;
	annex->gap_count--;
	return false;
}

bool shm_annexes_withdraw(struct segment *segment, uint64_t at, uint64_t bytes)
{
	bool is_done = true;

	if (atomic_load(&segment->annex_count) == 0)
		return true;
	pthread_mutex_lock(&lock);
	for (struct annex *annex = segment->annexes; annex; annex = annex->next) {
		uint8_t *begin = page_down(segment, annex->memory);
		uint64_t until = annex->at + (uint64_t)(page_up(segment, annex->end) - begin);

		if (annex->is_mapped && annex->at < at + bytes && at < until) /* pages of one region belong to no other */
			is_done = withdraw(annex, begin + (at - annex->at), begin + (at + bytes - annex->at)) && is_done;
	}
	pthread_mutex_unlock(&lock);
	return is_done;
}

/* ---- private again ---- */

/*
 * Private at one instant, while others may be writing: what is read comes from the file as before, and what is written
 * is the process's own. The file must not change any more.
 */
static void freeze(struct annex *annex)
{
	annex->is_shared = false;
	for (uint8_t *from = annex->pages, *end; next_run(annex, &from, &end); from = end) {
		/*
		 * The process has too many mappings: the rest stays shared, it is at least still there. Private pages must not
		 * be mapped again.
		 */
		if (!map_pages(annex, from, (uint64_t)(end - from), MAP_PRIVATE)) {
			annex->pages = from;
			return;
		}
	}
	annex->is_mapped = false;
}

enum moved {
	MOVED_OUT,   /* the heap has its pages back                                              */
	MOVED_AWAY,  /* all of it is private, but the file's pages are still needed              */
	MOVED_PARTLY /* there is no memory: some is still shared, and nothing else has happened   */
};

static enum moved move_out(struct annex *annex)
{
	/* A child has the file's pages, or a peer may still store into withdrawn ones. */
	enum moved moved = annex->was_forked || annex->gap_count > 0 ? MOVED_AWAY : MOVED_OUT;

	for (uint8_t *from = annex->pages, *end; next_run(annex, &from, &end); from = end) {
		uint64_t bytes = (uint64_t)(end - from);

		if (replace_pages(from, bytes)) {
			if (!annex->was_forked)
				(void)shm_segment_release(annex->segment, place_of(annex, from), bytes);
			continue;
		}
		if (!map_pages(annex, from, bytes, MAP_PRIVATE)) {
			annex->pages = from; /* pages before it are private, and the file may have nothing in their place */
			return MOVED_PARTLY;
		}
		annex->was_forked = true; /* or as good as: the file's pages are needed from now on */
		moved = MOVED_AWAY;
	}
	annex->is_mapped = false;
	return moved;
}

/* ---- making ---- */

/*
 * Pages of the heap for all pages that the memory touches, as far from the beginning of a huge page as those are, so
 * that huge pages of the file can be mapped as such at both places.
 */
static bool take_place(struct annex *annex)
{
	struct segment *segment = annex->segment;
	uint64_t page = segment->layout.page, per_huge = page < HUGE_PAGE ? HUGE_PAGE / page : 1;
	uint64_t pages = (uint64_t)(page_up(segment, annex->end) - page_down(segment, annex->memory)) / page;
	uint64_t off = pages >= per_huge ? (uintptr_t)annex->memory / page % per_huge : 0;

	pthread_mutex_lock(&segment->lock);
	bool fits = shm_heap_take(&segment->heap, off + pages, pages >= per_huge ? per_huge : 1, 0, &annex->first);
	pthread_mutex_unlock(&segment->lock);
	annex->at = segment->layout.heap_at + (annex->first + off) * page;
	return fits;
}

static void give_place(const struct annex *annex)
{
	pthread_mutex_lock(&annex->segment->lock);
	shm_heap_give(&annex->segment->heap, annex->first);
	pthread_mutex_unlock(&annex->segment->lock);
}

/* Head and tail in the heap; the pages between them come with what is moved there. */
static bool reserve_ends(const struct annex *annex)
{
	const struct segment *segment = annex->segment;
	uint64_t head = (uint64_t)(annex->pages - page_down(segment, annex->memory));
	uint64_t tail = (uint64_t)(page_up(segment, annex->end) - annex->pages_end);

	return (head == 0 || shm_segment_reserve(segment, annex->at, head)) &&
	       (tail == 0 || shm_segment_reserve(segment, place_of(annex, annex->pages_end), tail));
}

static void release_ends(const struct annex *annex)
{
	const struct segment *segment = annex->segment;

	if (annex->pages > annex->memory)
		(void)shm_segment_release(segment, annex->at, segment->layout.page);
	if (annex->end > annex->pages_end)
		(void)shm_segment_release(segment, place_of(annex, annex->pages_end), segment->layout.page);
}

/* False: no memory, and all is as it was. */
static bool fill(struct annex *annex)
{
	uint8_t *end = annex->pages;

	if (!take_place(annex))
		return false;
	if (reserve_ends(annex) && move_in(annex, &end)) {
		annex->is_shared = annex->is_mapped = true;
		return true;
	}
	(void)shm_segment_release(annex->segment, place_of(annex, end), (uint64_t)(annex->pages_end - end));
	release_ends(annex);
	annex->pages_end = end;
	if (move_out(annex) == MOVED_OUT)
		give_place(annex);
	return false;
}

static bool overlaps(const struct segment *segment, const uint8_t *from, const uint8_t *end)
{
	for (const struct annex *annex = segment->annexes; annex; annex = annex->next)
		if (annex->memory < end && from < annex->end)
			return true;
	return false;
}

static struct annex *new_annex(struct segment *segment, uint8_t *memory, size_t bytes)
{
	struct annex *annex = calloc(1, sizeof(*annex));

	if (!annex)
		return NULL;
	annex->segment = segment;
	annex->memory = memory;
	annex->end = memory + bytes;
	annex->pages = page_up(segment, memory);
	annex->pages_end = page_down(segment, annex->end);
	/* Without a whole page, or a reader, it is only remembered. */
	if (annex->pages >= annex->pages_end || segment->config.peers < 2)
		annex->pages = annex->pages_end = memory;
	return annex;
}

static void add(struct segment *segment, struct annex *annex)
{
	pthread_mutex_lock(&lock);
	annex->next = segment->annexes;
	segment->annexes = annex;
	atomic_fetch_add(&segment->annex_count, 1);
	pthread_mutex_unlock(&lock);
	if (segment->was_annexed)
		return;
	segment->was_annexed = true;
	segment->next_annexed = annexed;
	annexed = segment;
}

static enum esp_status make(struct segment *segment, uint8_t *memory, size_t bytes, struct error *err)
{
	if (overlaps(segment, memory, memory + bytes)) /* only threads that hold `moving` change the list */
		return error_set(err, ESP_EINVAL, "some of the %zu bytes at %p are shared already", bytes, (void *)memory);
	struct annex *annex = new_annex(segment, memory, bytes);
	if (!annex)
		return error_set(err, ESP_ENOMEM, "no memory to share memory");
	enum esp_status status = ESP_OK;
	if (annex->pages < annex->pages_end && !is_private(annex->pages, annex->pages_end))
		status = error_set(err, ESP_EUNSUPPORTED,
		                   "the %zu bytes at %p are not private memory that can be written, as from malloc()", bytes,
		                   (void *)memory);
	else if (annex->pages < annex->pages_end && !fill(annex))
		status =
			error_set(err, ESP_ENOMEM, "no shared memory for %zu bytes: the host or its cgroup has too little", bytes);
	if (status == ESP_OK)
		add(segment, annex);
	else
		free(annex);
	return status;
}

enum esp_status shm_annex_make(struct segment *segment, void *memory, size_t bytes, struct error *err)
{
	if (bytes == 0 || shm_segment_owns(segment, memory, bytes))
		return ESP_OK;
	pthread_mutex_lock(&moving);
	enum esp_status status = make(segment, memory, bytes, err);
	pthread_mutex_unlock(&moving);
	return status;
}

/* ---- ending ---- */

static void drop(struct annex *annex)
{
	struct segment *segment = annex->segment;

	pthread_mutex_lock(&lock);
	struct annex **at = &segment->annexes;
	while (*at != annex) /* it is there */
		at = &(*at)->next;
	*at = annex->next;
	atomic_fetch_sub(&segment->annex_count, 1);
	pthread_mutex_unlock(&lock);
	free(annex->gaps);
	free(annex);
}

/* Calls do not get it any more. False: one has it. */
static bool retire(struct annex *annex)
{
	pthread_mutex_lock(&lock);
	bool is_free = annex->uses == 0;
	if (is_free)
		annex->is_shared = false;
	pthread_mutex_unlock(&lock);
	return is_free;
}

static enum esp_status end(struct annex *annex, struct error *err)
{
	if (!retire(annex))
		return error_set(err, ESP_ESTATE, "a call still uses the memory at %p", (void *)annex->memory);
	enum moved moved = annex->pages < annex->pages_end ? move_out(annex) : MOVED_AWAY;
	if (moved == MOVED_PARTLY)
		return error_set(err, ESP_ENOMEM, "no memory to make the memory at %p private; calls copy it from now on",
		                 (void *)annex->memory);
	if (moved == MOVED_OUT) {
		release_ends(annex);
		give_place(annex);
	}
	drop(annex);
	return ESP_OK;
}

enum esp_status shm_annex_end(struct segment *segment, void *memory, struct error *err)
{
	pthread_mutex_lock(&moving);
	struct annex *annex = segment->annexes;
	while (annex && annex->memory != memory)
		annex = annex->next;
	enum esp_status status = annex ? end(annex, err)
	                         : shm_segment_owns(segment, memory, 1)
	                             ? ESP_OK
	                             : error_set(err, ESP_EINVAL, "nothing was shared at %p", memory);
	pthread_mutex_unlock(&moving);
	return status;
}

void shm_annexes_close(struct segment *segment)
{
	if (!segment->was_annexed)
		return;
	pthread_mutex_lock(&moving);
	for (struct annex *annex = segment->annexes, *next; annex; annex = next) {
		next = annex->next;
		if (annex->is_mapped)
			freeze(annex);
		drop(annex);
	}
	struct segment **at = &annexed;
	while (*at && *at != segment) /* a child has none */
		at = &(*at)->next_annexed;
	if (*at)
		*at = segment->next_annexed;
	pthread_mutex_unlock(&moving);
}

/* ---- using ---- */

struct annex *shm_annex_get(struct segment *segment, const void *memory, size_t bytes, uint8_t **out_place)
{
	const uint8_t *from = memory;

	if (atomic_load_explicit(&segment->annex_count, memory_order_relaxed) == 0)
		return NULL;
	pthread_mutex_lock(&lock);
	struct annex *annex = segment->annexes;
	/*
	 * One that a child has seen is not given to another call: its pages are to become private when those end that have
	 * it.
	 */
	while (annex && !(annex->is_shared && !annex->was_forked && from >= annex->memory && from < annex->end &&
	                  bytes <= (size_t)(annex->end - from)))
		annex = annex->next;
	if (annex && has_withdrawn(annex, from, bytes))
		annex = NULL;
	if (annex) {
		annex->uses++;
		*out_place = segment->base + place_of(annex, from);
	}
	pthread_mutex_unlock(&lock);
	return annex;
}

void shm_annex_put(struct annex *annex)
{
	pthread_mutex_lock(&lock);
	assert(annex->uses > 0);
	if (--annex->uses == 0 && annex->was_forked && annex->is_mapped)
		freeze(annex);
	pthread_mutex_unlock(&lock);
}

bool shm_annex_is_whole(const struct annex *annex, const void *memory, size_t bytes)
{
	return memory == annex->memory && bytes == (size_t)(annex->end - annex->memory);
}

/* Bytes of [memory, end) that lie before the pages, and behind them. */
static uint64_t head_of(const struct annex *annex, const uint8_t *memory, const uint8_t *end)
{
	if (memory >= annex->pages)
		return 0;
	return (uint64_t)((end < annex->pages ? end : annex->pages) - memory);
}

static uint64_t tail_of(const struct annex *annex, const uint8_t *memory, const uint8_t *end)
{
	if (end <= annex->pages_end)
		return 0;
	return (uint64_t)(end - (memory > annex->pages_end ? memory : annex->pages_end));
}

void shm_annex_fetch_ends(const struct annex *annex, const void *memory, size_t bytes)
{
	const uint8_t *from = memory, *end = from + bytes;
	uint64_t head = head_of(annex, from, end), tail = tail_of(annex, from, end);
	uint8_t *base = annex->segment->base;

	memcpy(base + place_of(annex, from), from, head);
	memcpy(base + place_of(annex, end - tail), end - tail, tail);
}

void shm_annex_store_ends(const struct annex *annex, void *memory, size_t bytes)
{
	uint8_t *from = memory, *end = from + bytes;
	uint64_t head = head_of(annex, from, end), tail = tail_of(annex, from, end);
	const uint8_t *base = annex->segment->base;

	memcpy(from, base + place_of(annex, from), head);
	memcpy(end - tail, base + place_of(annex, end - tail), tail);
}

/* ---- children ---- */

void shm_annexes_before_fork(void)
{
	pthread_mutex_lock(&moving);
	pthread_mutex_lock(&lock);
	for (struct segment *segment = annexed; segment; segment = segment->next_annexed) {
		for (struct annex *annex = segment->annexes; annex; annex = annex->next) {
			if (!annex->is_mapped)
				continue;
			annex->was_forked = true;
			if (annex->uses == 0)
				freeze(annex);
		}
	}
}

void shm_annexes_in_parent(void)
{
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&moving);
}

/* Memory that calls use is still shared: not with us. Their unfinished results are as they are. */
void shm_annexes_in_child(void)
{
	for (struct segment *segment = annexed; segment; segment = segment->next_annexed) {
		for (struct annex *annex = segment->annexes; annex; annex = annex->next) {
			if (annex->is_mapped)
				freeze(annex);
		}
	}
	annexed = NULL;
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&moving);
}
