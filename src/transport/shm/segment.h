/*
 * segment.h - the shared memory of one rank: it alone writes, the ranks of its host read; in the heap they may store
 * what it asks them for.
 *
 * One memfd per rank, sealed so that it cannot shrink; its descriptor is passed to the authenticated peers
 * (SCM_RIGHTS), which map it for reading, and its heap for writing, too, if its owner lets them. A process that was
 * stopped and thaws late can corrupt none of them: memory that it might still store into is withdrawn before its owner
 * goes on (shm_segment_withdraw()). And a process that ends leaves nothing behind. The file is sparse: pages that are
 * never touched cost address space only. docs/shm.md has the layout and the protocol.
 *
 *     head      layout, dozing flags
 *     lanes     per lane and peer: a ring of descriptors, counters of messages taken and consumed
 *     cells     per channel: two, for the small path (rank/comm/shm_small.h)
 *     slots     copies of data from private memory, until the peers have consumed them
 *     heap      esp_alloc(): data that peers read where it lies
 *
 * All that is read from a peer's segment is checked before it is used: the peer may be broken.
 */
#ifndef TRANSPORT_SHM_SEGMENT_H
#define TRANSPORT_SHM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct segment;      /* one's own   */
struct segment_view; /* a peer's    */

struct segment_config {
	uint32_t lanes;
	uint32_t peers;        /* ranks of this host, ourselves too                          */
	uint32_t self;         /* our number among them                                      */
	uint32_t slot_bytes;   /* the largest message that is copied                         */
	uint32_t slots;        /* per lane, raised to two per rank; memory is taken when they are needed */
	uint32_t small_shm_bytes;  /* of one cell                                                */
	uint64_t heap_bytes;   /* address space for esp_alloc(); e.g. all memory of the host */
	bool is_open;          /* peers may store into the heap, and we into theirs if they let us; each rank as it likes */
};

/* Memory that a slot for messages of so many bytes takes. */
uint64_t shm_segment_slot_cost(uint32_t slot_bytes);

ESP_CHECKED enum esp_status shm_segment_open(const struct segment_config *config, struct segment **out,
                                             struct error *err);
void shm_segment_close(struct segment *segment);           /* NULL is fine. Memory that was kept stays. */
int shm_segment_descriptor(const struct segment *segment); /* borrowed: to be passed to peers */

/*
 * Maps a peer's segment; takes the descriptor, also if this fails. The configuration but for self must be ours.
 * ESP_ECORRUPT: is no such segment. ESP_ENOMEM: no room in the address space.
 */
ESP_CHECKED enum esp_status shm_segment_view_open(const struct segment *own, uint32_t peer, int fd,
                                                  struct segment_view **out, struct error *err);
/* The same of a segment of this process, without a mapping of its own: for tools that look for races. Borrows it. */
ESP_CHECKED enum esp_status shm_segment_view_borrow(const struct segment *own, uint32_t peer, const struct segment *of,
                                                    struct segment_view **out, struct error *err);
void shm_segment_view_close(struct segment_view *view); /* NULL is fine */

/*
 * The small path: two cells of small_shm_bytes each, at a multiple of 64. write: ours; read: a peer's. Any thread.
 * Before we write, memory is reserved: so much of each cell as will be used. False: there is none.
 */
ESP_CHECKED bool shm_segment_small_reserve(struct segment *segment, uint16_t channel, uint32_t bytes);
void *shm_segment_small(const struct segment *segment, uint16_t channel, uint32_t cell);
const void *shm_segment_view_small(const struct segment_view *view, uint16_t channel, uint32_t cell);
/* Gives it back to the system; the cells, of which so much of each was used, read as zero then. */
void shm_segment_small_clear(struct segment *segment, uint16_t channel, uint32_t bytes);

/*
 * Memory that the ranks of this host read where it lies: at a multiple of 4096, zeroed, reserved. NULL: none left. Any
 * thread.
 */
void *shm_segment_alloc(struct segment *segment, size_t bytes);
/* False: it is not from shm_segment_alloc(), or was freed before. NULL is fine. */
bool shm_segment_free(struct segment *segment, void *memory);
/*
 * Does all of it lie in memory from shm_segment_alloc() that peers have, too? Told by the place: what was freed still
 * counts.
 */
bool shm_segment_owns(const struct segment *segment, const void *memory, size_t bytes);
/* May peers store into our heap? */
bool shm_segment_is_open(const struct segment *segment);
/*
 * The pages of this memory, which all belong to the caller, become private: they keep their place and content, but
 * peers have others from now on. For memory that a peer may store into although no call waits for it any more. Any
 * thread. False: no memory for it.
 */
bool shm_segment_withdraw(struct segment *segment, void *memory, size_t bytes);

/*
 * Memory from shm_segment_alloc() is to stay when the segment goes: it is private to this process then, at the same
 * place. False: it is not from there. shm_segment_free_kept() frees it, before and after. False: this process has not
 * kept it, or freed it before. Any thread.
 */
bool shm_segment_keep(struct segment *segment, void *memory);
bool shm_segment_free_kept(void *memory);

#endif
