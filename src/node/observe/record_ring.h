/*
 * record_ring.h - the last calls of a rank, the oldest first: the flight recorder's memory. Pure; the owner locks it.
 */
#ifndef NODE_OBSERVE_RECORD_RING_H
#define NODE_OBSERVE_RECORD_RING_H

#include "node/observe/record.h"

#define RING_RECORDS 1024u

struct ring {
	uint64_t added; /* number ever added; the ring holds the last RING_RECORDS of them */
	struct record records[RING_RECORDS];
};

static inline void ring_add(struct ring *ring, const struct record *record)
{
	ring->records[ring->added++ % RING_RECORDS] = *record;
}

static inline uint32_t ring_count(const struct ring *ring)
{
	return ring->added < RING_RECORDS ? (uint32_t)ring->added : RING_RECORDS;
}

/* index 0: the oldest record in the ring. index < ring_count(). */
static inline const struct record *ring_at(const struct ring *ring, uint32_t index)
{
	return &ring->records[(ring->added - ring_count(ring) + index) % RING_RECORDS];
}

#endif
