#include "engine/pool.h"

#include <assert.h>
#include <stdlib.h>

#include "transport/transport.h"

struct pool_buffer {
	struct pool_buffer *next;
};

#define POOL_ALIGN 64u /* a cache line, and the widest vector */
static_assert(POOL_ALIGN >= TRANSPORT_SHIFTS, "what is put at a shift is found again");

void exec_pool_init(struct pool *pool, size_t bytes)
{
	size_t least = bytes > sizeof(struct pool_buffer) ? bytes : sizeof(struct pool_buffer);

	*pool = (struct pool){.bytes = (least + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN};
}

void exec_pool_fini(struct pool *pool)
{
	while (pool->free) {
		struct pool_buffer *buffer = pool->free;

		pool->free = buffer->next;
		free(buffer);
	}
}

void *exec_pool_get(struct pool *pool)
{
	struct pool_buffer *buffer = pool->free;

	if (buffer) {
		pool->free = buffer->next;
		return buffer;
	}
	buffer = aligned_alloc(POOL_ALIGN, pool->bytes);
	if (buffer)
		pool->count++;
	return buffer;
}

void exec_pool_put(struct pool *pool, void *buffer)
{
	if (!buffer)
		return;
	struct pool_buffer *back = (void *)((uint8_t *)buffer - (uintptr_t)buffer % POOL_ALIGN);
	back->next = pool->free;
	pool->free = back;
}
