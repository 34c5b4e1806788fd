/*
 * slots.h - the slots of a lane: copies of data, each for one or more peers. Private to shm.
 *
 * A copy is known by its channel and content, so that a message to several peers is copied once. The slot
 * that was freed last is taken first, as it is in the cache. Memory for slots is reserved in
 * steps, when all that there are are taken, and kept. Belongs to the thread that drives the lane.
 */
#ifndef TRANSPORT_SHM_SLOTS_H
#define TRANSPORT_SHM_SLOTS_H

#include "transport/shm/parts.h"

#define SLOT_NONE UINT32_MAX

struct slot {
	uint64_t content;  /* 0: unknown, not in the table       */
	uint32_t next;     /* free, or in a row of the table     */
	uint32_t users;    /* messages that were not consumed    */
	uint16_t channel;
	uint8_t shift;     /* of the data within it */
};

struct slots {
	const struct segment *segment;
	uint32_t lane;
	uint32_t reserved;  /* of all[]: those that have memory                                */
	uint32_t step;      /* how many get it at a time                                       */
	uint32_t limit;     /* how many there can be: as configured, or for how many there was memory */
	uint32_t free_first;
	uint32_t taken, taken_most;
	struct slot *all;
	uint32_t *table;    /* rows of slots by channel and content */
	uint32_t table_mask;
};

/* ESP_ENOMEM: not even for the first step; fini is due in any case. */
ESP_CHECKED enum esp_status shm_slots_init(struct slots *slots, const struct segment *segment, uint32_t lane);
void shm_slots_fini(struct slots *slots); /* zeroed is fine */

/* Is there one for shm_slots_get()? */
bool shm_slots_available(struct slots *slots);
/* How many can still be taken, as far as is known. */
uint32_t shm_slots_left(const struct slots *slots);
/* The copy of that content, which gets one user more; SLOT_NONE: there is none. */
uint32_t shm_slots_find(struct slots *slots, uint16_t channel, uint64_t content);
/*
 * A free slot, with one user, for data that is shifted (transport.h). One is available. content 0: is not found by
 * others.
 */
uint32_t shm_slots_get(struct slots *slots, uint16_t channel, uint64_t content, uint8_t shift);
/* A user less. */
void shm_slots_put(struct slots *slots, uint32_t slot);
/* The contents of a channel are not found any more, as their numbers may be used again. */
void shm_slots_forget(struct slots *slots, uint16_t channel);

uint64_t slots_at(const struct slots *slots, uint32_t slot); /* its data, in the segment */

#endif
