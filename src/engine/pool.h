/*
 * pool.h - buffers of one size, kept for reuse. Private to src/engine.
 *
 * Holds what arrives before its turn, and the scratch places of chunks. It grows to what
 * is needed at a time and then no more, so steady state allocates nothing.
 */
#ifndef ENGINE_POOL_H
#define ENGINE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool_buffer;

struct pool {
	size_t bytes; /* of one buffer */
	struct pool_buffer *free;
	uint32_t count; /* made so far */
};

void exec_pool_init(struct pool *pool, size_t bytes);
/* All buffers must have been put back, or are lost to their users. */
void exec_pool_fini(struct pool *pool);
void *exec_pool_get(struct pool *pool); /* NULL: out of memory; at the beginning of a cache line */
/* Any address within its first line will do. */
void exec_pool_put(struct pool *pool, void *buffer);

#endif
