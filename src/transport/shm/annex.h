/*
 * Adopted memory: the caller's own memory as a part of the heap.
 *
 * Memory that was there before, from malloc(), say, is private. Its whole pages can be moved into the heap of a segment
 * and mapped, for the caller, where they were. Then the same bytes are at two places: at the caller's, and in the heap,
 * where peers read and store. A call on such memory works on the place in the heap.
 *
 *     caller's     [ ...head|page|page|page|tail... ]       the pages are those of the heap
 *     heap    [....|page|page|page|....]                    head and tail are copied: other data shares their pages
 *
 * Nothing that the caller writes is lost: pages are moved while no thread writes to them (shm_annex_make(),
 * shm_annex_end()), or become private as a whole at one instant, with their content (fork(), the segment's end). Any
 * thread.
 */
#ifndef TRANSPORT_SHM_ANNEX_H
#define TRANSPORT_SHM_ANNEX_H

#include "transport/shm/segment.h"

struct annex;

/*
 * No other thread writes to the memory meanwhile, and it stays mapped until shm_annex_end() or the end of the segment.
 * Memory of the heap is left as it is. ESP_EINVAL: some of it is adopted already. ESP_EUNSUPPORTED: it is not private
 * memory that can be written, or there is no /proc to see that. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status shm_annex_make(struct segment *segment, void *memory, size_t bytes, struct error *err);
/*
 * It is private again. ESP_EINVAL: no adopted memory begins there. ESP_ESTATE: it is in use. ESP_ENOMEM: some of it
 * stays shared, and calls do not use that.
 */
ESP_CHECKED enum esp_status shm_annex_end(struct segment *segment, void *memory, struct error *err);

/*
 * Memory that is adopted, and shared; *out_place: where it is in the heap. It is in use until shm_annex_put(). NULL: it
 * is not adopted.
 */
ESP_CHECKED struct annex *shm_annex_get(struct segment *segment, const void *memory, size_t bytes, uint8_t **out_place);
void shm_annex_put(struct annex *annex);
/*
 * Is this all of the memory that it was made of? Then the pages in which that begins and ends in the heap hold nothing
 * else.
 */
bool shm_annex_is_whole(const struct annex *annex, const void *memory, size_t bytes);
/* Copies what of this memory lies in head and tail: to the heap, and back. */
void shm_annex_fetch_ends(const struct annex *annex, const void *memory, size_t bytes);
void shm_annex_store_ends(const struct annex *annex, void *memory, size_t bytes);

#endif
