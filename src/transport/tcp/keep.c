#include "transport/tcp/keep.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 4096u

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

bool tcp_keep_has_room(const struct keep *keep, size_t bytes)
{
	return keep->capacity - (size_t)(keep->end - keep->first) >= bytes;
}

/* Into a ring, from the place of the stream on. */
static void put(uint8_t *ring, size_t capacity, uint64_t place, const uint8_t *from, size_t bytes)
{
	size_t at = (size_t)place & (capacity - 1), before = least(bytes, capacity - at);

	memcpy(ring + at, from, before);
	memcpy(ring, from + before, bytes - before);
}

static bool grow(struct keep *keep, size_t bytes)
{
	size_t needed = (size_t)(keep->end - keep->first) + bytes, capacity = keep->capacity ? keep->capacity : LEAST, have;
	const void *at;

	while (capacity < needed)
		capacity *= 2;
	uint8_t *ring = malloc(capacity);
	if (!ring)
		return false;
	for (uint64_t place = keep->first; (have = tcp_keep_span(keep, place, &at)) > 0; place += have)
		put(ring, capacity, place, at, have);
	free(keep->bytes);
	keep->bytes = ring;
	keep->capacity = capacity;
	return true;
}

bool tcp_keep_add(struct keep *keep, const struct iovec *parts, size_t bytes)
{
	if (!tcp_keep_has_room(keep, bytes) && !grow(keep, bytes))
		return false;
	for (; bytes > 0; parts++) {
		size_t part = least(parts->iov_len, bytes);

		put(keep->bytes, keep->capacity, keep->end, parts->iov_base, part);
		keep->end += part;
		bytes -= part;
	}
	return true;
}

void tcp_keep_trim(struct keep *keep, uint64_t to)
{
	assert(to <= keep->end);
	if (to > keep->first)
		keep->first = to;
}

size_t tcp_keep_span(const struct keep *keep, uint64_t from, const void **out_at)
{
	assert(from >= keep->first && from <= keep->end);
	if (from == keep->end)
		return 0;
	size_t at = (size_t)from & (keep->capacity - 1);
	*out_at = keep->bytes + at;
	return least((size_t)(keep->end - from), keep->capacity - at);
}

void tcp_keep_fini(struct keep *keep)
{
	free(keep->bytes);
	*keep = (struct keep){0};
}
