/*
 * keep.h - sent bytes that may have to be sent again: the end of a stream of bytes. Private to tcp.
 *
 * Bytes are known by their place in the stream, counted from its first one. A ring that grows; pure.
 */
#ifndef TRANSPORT_TCP_KEEP_H
#define TRANSPORT_TCP_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct keep {
	uint8_t *bytes;
	size_t capacity;     /* a power of two, or 0             */
	uint64_t first, end; /* of the bytes it holds: end is not in it */
};

/* Is there room for that many without growing? */
bool tcp_keep_has_room(const struct keep *keep, size_t bytes);
/* The first so many bytes of the parts. False: no memory; nothing has changed. */
bool tcp_keep_add(struct keep *keep, const struct iovec *parts, size_t bytes);
/* Bytes before `to`, which is not beyond the end, are not needed any more. */
void tcp_keep_trim(struct keep *keep, uint64_t to);
/* The bytes from `from` on, as far as they lie together; 0: that is the end. */
size_t tcp_keep_span(const struct keep *keep, uint64_t from, const void **out_at);
void tcp_keep_fini(struct keep *keep);

#endif
