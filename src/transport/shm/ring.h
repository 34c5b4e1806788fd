/*
 * ring.h - descriptors of messages, from one writer to one reader. Private to shm.
 *
 * The writer fills in three words of a descriptor and then stores the first, which has the tag, with release; the
 * reader loads the first with acquire, and if the tag is the one that comes next, everything that the writer did
 * before, the data of the message included, is there. The tag counts descriptors, so an old one, left from the lap
 * before, is told from a new one without being cleared. The reader copies each word once: the writer may be broken, and
 * change it between two reads.
 *
 * How many descriptors the reader has copied out lies in the reader's segment. The last free place of a ring is kept
 * for RING_END, so that an end can always be told.
 */
#ifndef TRANSPORT_SHM_RING_H
#define TRANSPORT_SHM_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/shm/layout.h"

enum ring_kind {
	RING_CREDIT = 1, /* no data: channel and ack; the stamp is that of the messages that it acknowledges        */
	RING_EMPTY,      /* a message of no bytes                                                                   */
	RING_SLOT,       /* its data lies in a slot of the lane                                                     */
	RING_BRIEF,      /* the same, but slots are few: until the descriptor counts as copied out, and no longer   */
	RING_HEAP,       /* its data lies in the heap                                                               */
	RING_OPEN,       /* the same, and the answer may be stored in the heap, too                                 */
	RING_STORED,     /* an answer that lies where it was wanted                                                 */
	RING_END,        /* nothing follows: the writer has failed, or is through with this reader                  */
	RING_KINDS,
};

/* The content of a descriptor. */
struct ring_note {
	uint8_t kind; /* enum ring_kind, if it is one */
	uint16_t channel;
	uint32_t stamp; /* which use of the channel: the number may be used again, and counts from the beginning then */
	uint32_t index, ack, call, bytes;
	uint64_t at;    /* offset in the segment */
	/* RING_OPEN: where the answer may be stored, the same; it does not stand in the descriptor (layout_replies()) */
	uint64_t reply;
};

/* Does its data lie in the heap, whose owner waits until it is consumed? */
static inline bool ring_is_lent(uint8_t kind)
{
	return kind == RING_HEAP || kind == RING_OPEN;
}

struct ring_descriptor {
	_Atomic uint64_t words[4]; /* tag 16, channel 16, stamp 32 | index, ack | call, bytes | kind 8, at 56 */
};
static_assert(sizeof(struct ring_descriptor) == LAYOUT_DESCRIPTOR_BYTES, "as the layout has it");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "or it would not work between processes");

enum ring_look { RING_NOTHING, RING_SOME, RING_NONSENSE };

static inline uint64_t ring_pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static inline void ring_put(struct ring_descriptor *ring, uint64_t position, const struct ring_note *note)
{
	struct ring_descriptor *to = &ring[position % LAYOUT_RING];
	uint32_t head = (uint16_t)(position + 1) | (uint32_t)note->channel << 16;

	atomic_store_explicit(&to->words[1], ring_pair(note->index, note->ack), memory_order_relaxed);
	atomic_store_explicit(&to->words[2], ring_pair(note->call, note->bytes), memory_order_relaxed);
	atomic_store_explicit(&to->words[3], note->kind | note->at << 8, memory_order_relaxed);
	atomic_store_explicit(&to->words[0], ring_pair(head, note->stamp), memory_order_release);
}

/* Judges the descriptor at that position. Nothing: it is left from the lap before, or was never written. */
static inline enum ring_look ring_judge(uint64_t first_word, uint64_t position)
{
	uint16_t tag = (uint16_t)first_word, next = (uint16_t)(position + 1);

	if (tag == next)
		return RING_SOME;
	return tag == (position < LAYOUT_RING ? 0 : (uint16_t)(next - LAYOUT_RING)) ? RING_NOTHING : RING_NONSENSE;
}

static inline enum ring_look ring_take(const struct ring_descriptor *ring, uint64_t position, struct ring_note *out)
{
	const struct ring_descriptor *from = &ring[position % LAYOUT_RING];
	uint64_t first = atomic_load_explicit(&from->words[0], memory_order_acquire);
	enum ring_look look = ring_judge(first, position);

	if (look != RING_SOME)
		return look;
	uint64_t numbers = atomic_load_explicit(&from->words[1], memory_order_relaxed);
	uint64_t sizes = atomic_load_explicit(&from->words[2], memory_order_relaxed);
	uint64_t place = atomic_load_explicit(&from->words[3], memory_order_relaxed);
	*out = (struct ring_note){
		.kind = (uint8_t)place,
		.channel = (uint16_t)(first >> 16),
		.stamp = (uint32_t)(first >> 32),
		.index = (uint32_t)numbers,
		.ack = (uint32_t)(numbers >> 32),
		.call = (uint32_t)sizes,
		.bytes = (uint32_t)(sizes >> 32),
		.at = place >> 8,
	};
	return RING_SOME;
}

static inline bool ring_has_news(const struct ring_descriptor *ring, uint64_t position)
{
	uint64_t first = atomic_load_explicit(&ring[position % LAYOUT_RING].words[0], memory_order_acquire);

	return ring_judge(first, position) != RING_NOTHING;
}

#endif
