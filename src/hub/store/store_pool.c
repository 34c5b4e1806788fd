#include "hub/store/store_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "transport/transport.h"

#define POOL_ALIGN 64u /* a cache line, and the widest vector */
static_assert(POOL_ALIGN >= TRANSPORT_SHIFTS, "a shift is less than a line");

static uint64_t slot_bytes(uint32_t term_bytes)
{
	return (term_bytes + UINT64_C(2) * POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
}

uint64_t store_pool_bytes(uint64_t count, uint32_t term_bytes)
{
	return count * (slot_bytes(term_bytes) + sizeof(struct store_slot)) + POOL_ALIGN;
}

enum esp_status store_pool_init(struct store_pool *pool, uint32_t count, uint32_t term_bytes)
{
	*pool = (struct store_pool){.slot_bytes = slot_bytes(term_bytes), .count = count, .free = STORE_NO_SLOT};
	if (count == 0)
		return ESP_OK;
	pool->memory = aligned_alloc(POOL_ALIGN, count * pool->slot_bytes);
	pool->slots = calloc(count, sizeof(*pool->slots));
	return pool->memory && pool->slots ? ESP_OK : ESP_ENOMEM;
}

void store_pool_fini(struct store_pool *pool)
{
	free(pool->memory);
	free(pool->slots);
	*pool = (struct store_pool){0};
}

uint32_t store_pool_get(struct store_pool *pool, uint8_t shift)
{
	uint32_t slot = pool->free;

	assert(shift < TRANSPORT_SHIFTS);
	if (slot != STORE_NO_SLOT) {
		pool->free = pool->slots[slot].next;
	} else {
		assert(pool->made < pool->count);
		slot = pool->made++;
	}
	pool->slots[slot] = (struct store_slot){.next = STORE_NO_SLOT, .shift = shift};
	return slot;
}

void store_pool_put(struct store_pool *pool, uint32_t slot)
{
	assert(slot < pool->made && pool->free != slot);
	pool->slots[slot].next = pool->free;
	pool->free = slot;
}

uint8_t *store_pool_at(const struct store_pool *pool, uint32_t slot)
{
	assert(slot < pool->made);
	return pool->memory + slot * pool->slot_bytes + pool->slots[slot].shift;
}
