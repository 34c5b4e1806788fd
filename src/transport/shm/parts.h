/* parts.h - the parts of a segment and of a view. Private to shm. */
#ifndef TRANSPORT_SHM_PARTS_H
#define TRANSPORT_SHM_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/shm/heap.h"
#include "transport/shm/layout.h"

#define SEGMENT_CELLS 2u /* of the small path */

/* Pages of the heap that are private. */
struct withdrawn {
	uint64_t at, bytes; /* in the segment */
	bool was_freed;     /* and never will be taken again: a peer may store into its copies of them */
};

struct segment {
	struct segment_config config;
	struct layout layout;
	int fd;        /* for us: reserves memory and gives it back                   */
	int shared_fd; /* for peers: cannot be written through, unless the heap is open */
	uint8_t *base;
	uintptr_t room, stride; /* where the views of peers may lie, side by side; 0: nowhere in particular */
	pthread_mutex_t lock;   /* of heap and withdrawn */
	struct heap heap;
	struct withdrawn *withdrawn;      /* in no order */
	_Atomic uint32_t withdrawn_count; /* changed under the lock */
	size_t withdrawn_capacity;
	_Atomic uint64_t lane_was_opened[4];                      /* bits by lane       */
	struct segment *next_kept; /* kept.c has it and the next one */
	bool has_kept;             /* it is in that list             */
	bool is_gone;              /* but for what was kept          */
	struct annex *annexes;     /* guarded by the lock of adopted memory */
	_Atomic uint32_t annex_count;
	struct segment *next_annexed;
	bool was_annexed;          /* it is in the list of those     */
};

struct segment_view {
	struct layout layout;
	uint32_t peer;
	const uint8_t *base;
	bool is_borrowed; /* the mapping is that of a segment of this process */
	bool is_open;     /* the heap can be written                          */
};

/* Takes memory for a span of the segment now, so that a lack of it shows here and not when it is written. */
ESP_CHECKED bool shm_segment_reserve(const struct segment *segment, uint64_t at, uint64_t bytes);

/* Gives memory of whole pages back; they read as zero. False: the segment is sealed against writing. */
bool shm_segment_release(const struct segment *segment, uint64_t at, uint64_t bytes);
/* With the lock held: some of it that is withdrawn; NULL: nothing is. */
struct withdrawn *shm_segment_withdrawn_in(const struct segment *segment, uint64_t at, uint64_t bytes);
void shm_segment_close_files(struct segment *segment);
/* All of it but the mapping. */
void shm_segment_dispose(struct segment *segment);
/*
 * From shm_segment_close(): nothing but what was kept is left of the segment, and kept.c has it now. False: nothing
 * was, and the caller has it still.
 */
ESP_CHECKED bool shm_kept_remains(struct segment *segment);
/* From shm_segment_close(): all adopted memory becomes private. */
void shm_annexes_close(struct segment *segment);
/*
 * Pages of the heap are about to be withdrawn: adopted ones among them become private first. False: no memory for it.
 */
ESP_CHECKED bool shm_annexes_withdraw(struct segment *segment, uint64_t at, uint64_t bytes);
/* Makes huge pages, if it can, of the whole ones in a span of the segment; shm_segment_reserve() takes care of the
 * rest. */
void shm_segment_use_huge_pages(const struct segment *segment, uint64_t at, uint64_t bytes);

/*
 * Pages take the place of others. By the system call itself: UCX, which MPI libraries bring along, puts its own
 * mremap() in the place of the C library's, and up to 1.13 that forgot the address (openucx/ucx, issue 8820): then
 * pages went anywhere.
 */
ESP_CHECKED bool shm_segment_move_pages(void *from, uint64_t bytes, void *to);

/*
 * forks.c: from now on a child made by fork() gets memory as the comments on adopted and kept memory say; these are the
 * parts.
 */
void shm_forks_watch(void);
void shm_annexes_before_fork(void);
void shm_annexes_in_parent(void);
void shm_annexes_in_child(void);
void shm_kept_before_fork(void);
void shm_kept_in_parent(void);
void shm_kept_in_child(void);

static inline void *segment_at(const struct segment *segment, uint64_t at)
{
	return segment->base + at;
}

static inline const void *view_at(const struct segment_view *view, uint64_t at)
{
	return view->base + at;
}

#endif
