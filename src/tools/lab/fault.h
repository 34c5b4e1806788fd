/*
 * fault.h - what happens to one frame on a link with faults, and the frames that wait for their time.
 *
 * Pure: time and chance are given. One seed and one sequence of frames in time give one sequence of fates, and a frame costs the
 * same number of random draws whatever is set, so that changing one setting does not change the others' dice.
 */
#ifndef TOOLS_LAB_FAULT_H
#define TOOLS_LAB_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "tools/lab/lab.h"

#define FAULT_HEADER 14u /* bytes of Ethernet that are never corrupted: the frame has to find its way */

/* One way of a link. */
struct fault {
	struct rng rng;
	uint64_t wave;    /* seed of the jitter */
	uint64_t last_ns; /* when the last frame that kept its order leaves */
};

struct fate {
	bool lost;
	bool late;       /* held back, for others to overtake */
	bool duplicated; /* a second one leaves right behind it */
	uint64_t leave_ns;
	bool corrupted;
	uint32_t bit; /* that is flipped: its number in the frame */
};

void fault_init(struct fault *fault, uint64_t seed, uint32_t link, enum lab_way way);

struct fate fault_draw(struct fault *fault, const struct lab_faults *faults, uint32_t frame_bytes, uint64_t now_ns);

/* ---- frames by the time at which they leave ---- */

struct waiting {
	uint64_t leave_ns;
	uint64_t order; /* of arrival: breaks ties, so that frames of one moment keep their order */
	void *frame;
};

struct queue {
	struct waiting *heap;
	size_t count, room;
	uint64_t order;
};

/* False: no memory, or full; then the frame is the caller's still. */
bool queue_push(struct queue *queue, uint64_t leave_ns, void *frame, size_t most);

/* The frame that leaves next if that is due, NULL otherwise. */
void *queue_pop(struct queue *queue, uint64_t now_ns);

/* When the next one leaves; UINT64_MAX: there is none. */
uint64_t queue_next_ns(const struct queue *queue);

/* Does not free frames. */
void queue_fini(struct queue *queue);

#endif
