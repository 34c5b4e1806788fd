/*
 * fault.h - the fate of each frame on a link with faults, and the queue of delayed frames.
 *
 * Pure: time and random numbers are given. One seed and one sequence of frames in time give one sequence of
 * fates. A frame takes the same number of random draws whatever the settings, so that changing one does not
 * change the others' draws.
 */
#ifndef TOOLS_LAB_FAULT_H
#define TOOLS_LAB_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "tools/lab/lab.h"

/* bytes of the Ethernet header, which are never corrupted: the frame has to reach its receiver */
#define FAULT_HEADER 14u

/* One direction of a link. */
struct fault {
	struct rng rng;
	uint64_t wave;    /* seed of the jitter */
	uint64_t last_ns; /* when the last frame that kept its order leaves */
};

struct fate {
	bool lost;
	bool late;       /* held back, so that later frames overtake it */
	bool duplicated; /* a copy leaves right behind it */
	uint64_t leave_ns;
	bool corrupted;
	uint32_t bit; /* number of the bit to flip */
};

void lab_fault_init(struct fault *fault, uint64_t seed, uint32_t link, enum lab_way way);

struct fate lab_fault_draw(struct fault *fault, const struct lab_faults *faults, uint32_t frame_bytes, uint64_t now_ns);

/* ---- the queue of frames, by the time at which they leave ---- */

struct waiting {
	uint64_t leave_ns;
	uint64_t order; /* of arrival: breaks ties, so that frames keep their order */
	void *frame;
};

struct queue {
	struct waiting *heap;
	size_t count, room;
	uint64_t order;
};

/* False: no memory, or full; the caller keeps the frame. */
bool lab_queue_push(struct queue *queue, uint64_t leave_ns, void *frame, size_t most);

/* The next frame if it is due, otherwise NULL. */
void *lab_queue_pop(struct queue *queue, uint64_t now_ns);

/* When the next frame leaves; UINT64_MAX: there is none. */
uint64_t lab_queue_next_ns(const struct queue *queue);

/* Does not free frames. */
void lab_queue_fini(struct queue *queue);

#endif
