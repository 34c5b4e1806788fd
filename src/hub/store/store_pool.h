/*
 * store_pool.h - the slots of a lane: memory for terms that came before their turn. Private to hub/store.
 *
 * All of one size. The memory is reserved at opening and touched from its beginning on as slots are needed, and the
 * slot that was freed last is used first: what is in use at a time stays in the caches, and the rest costs no page.
 */
#ifndef HUB_STORE_STORE_POOL_H
#define HUB_STORE_STORE_POOL_H

#include <stdint.h>

#include "base/error.h"

#define STORE_NO_SLOT UINT32_MAX

struct store_slot {
	uint32_t next;  /* free: the slot that was freed before it; STORE_NO_SLOT: none */
	uint32_t value; /* of the term: number of the hyper-parameters that hold for it */
	uint8_t shift;  /* bytes before the term, which lies within a cache line as the worker's memory does */
};

struct store_pool {
	uint8_t *memory;
	struct store_slot *slots;
	uint64_t slot_bytes; /* with room for the shift */
	uint32_t count, made; /* slots that there are; that were ever used */
	uint32_t free;        /* freed last */
};

/* Bytes of memory for so many slots, each for a term of so many bytes. */
uint64_t store_pool_bytes(uint64_t count, uint32_t term_bytes);
ESP_CHECKED enum esp_status store_pool_init(struct store_pool *pool, uint32_t count, uint32_t term_bytes);
void store_pool_fini(struct store_pool *pool); /* accepts a zeroed struct */

/* There is always one: the pool has a slot for each term that can wait. */
uint32_t store_pool_get(struct store_pool *pool, uint8_t shift);
void store_pool_put(struct store_pool *pool, uint32_t slot);
/* Where the term lies. */
uint8_t *store_pool_at(const struct store_pool *pool, uint32_t slot);

#endif
