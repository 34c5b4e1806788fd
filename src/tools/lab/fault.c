#include "tools/lab/fault.h"

#include <stdlib.h>

#include "base/units.h"
#include "base/vec.h"

void lab_fault_init(struct fault *fault, uint64_t seed, uint32_t link, enum lab_way way)
{
	uint64_t state = seed ^ ((uint64_t)link << 1 | (uint64_t)way) * UINT64_C(0x9e3779b97f4a7c15);
	*fault = (struct fault){0};
	rng_init(&fault->rng, rng_splitmix(&state));
	fault->wave = rng_splitmix(&state);
}

static bool happens(struct rng *rng, uint32_t share)
{
	return rng_below(rng, UNITS_SHARE_ALL) < share;
}

/* Between -1 and 1, at each knot of the wave below. */
static double knot(const struct fault *fault, uint64_t number)
{
	uint64_t state = fault->wave ^ number * UINT64_C(0xd1342543de82ef95);
	return (double)(rng_splitmix(&state) >> 11) * 0x1.0p-52 - 1;
}

/*
 * The delay at a time: a piecewise linear wave between random knots. The knots are two jitters apart, so that
 * the delay never falls faster than time passes: frames keep their order, however close they are, and the mean
 * delay is the one that was asked for. With an independent delay per frame, keeping the order would raise the
 * mean.
 */
static uint64_t delay_at(const struct fault *fault, const struct lab_faults *faults, uint64_t now_ns)
{
	uint64_t step = 2 * faults->jitter_ns;
	if (step == 0)
		return faults->delay_ns;
	double here = knot(fault, now_ns / step), next = knot(fault, now_ns / step + 1);
	double height = here + (next - here) * (double)(now_ns % step) / (double)step;
	double delay = (double)faults->delay_ns + height * (double)faults->jitter_ns;
	return delay > 0 ? (uint64_t)delay : 0;
}

struct fate lab_fault_draw(struct fault *fault, const struct lab_faults *faults, uint32_t frame_bytes, uint64_t now_ns)
{
	struct rng *rng = &fault->rng;
	struct fate fate = {0};
	fate.lost = happens(rng, faults->loss) || faults->cut;
	fate.late = happens(rng, faults->reorder);
	fate.duplicated = happens(rng, faults->duplicate);
	fate.corrupted = happens(rng, faults->corrupt) && frame_bytes > FAULT_HEADER;
	double where = rng_unit(rng), held = rng_unit(rng);
	if (fate.corrupted)
		fate.bit = FAULT_HEADER * 8 + (uint32_t)(where * (frame_bytes - FAULT_HEADER) * 8);
	if (fate.lost)
		return fate;
	fate.leave_ns = now_ns + delay_at(fault, faults, now_ns);
	if (fate.late) {
		fate.leave_ns += 1 + (uint64_t)(held * (double)faults->hold_ns);
	} else {
		/* after the delay was set lower, earlier frames still leave first */
		fate.leave_ns = fate.leave_ns > fault->last_ns ? fate.leave_ns : fault->last_ns;
		fault->last_ns = fate.leave_ns;
	}
	return fate;
}

/* ---- the heap ---- */

static bool is_before(const struct waiting *a, const struct waiting *b)
{
	return a->leave_ns != b->leave_ns ? a->leave_ns < b->leave_ns : a->order < b->order;
}

bool lab_queue_push(struct queue *queue, uint64_t leave_ns, void *frame, size_t most)
{
	if (queue->count >= most || !vec_reserve(&queue->heap, &queue->room, queue->count + 1, sizeof(*queue->heap)))
		return false;
	struct waiting entry = {leave_ns, queue->order++, frame};
	size_t at = queue->count++;
	while (at > 0 && is_before(&entry, &queue->heap[(at - 1) / 2])) {
		queue->heap[at] = queue->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue->heap[at] = entry;
	return true;
}

/* The last entry takes the place of the first and sinks to its position. */
static void remove_first(struct queue *queue)
{
	struct waiting entry = queue->heap[--queue->count];
	size_t at = 0, child;
	while ((child = 2 * at + 1) < queue->count) {
		if (child + 1 < queue->count && is_before(&queue->heap[child + 1], &queue->heap[child]))
			child++;
		if (!is_before(&queue->heap[child], &entry))
			break;
		queue->heap[at] = queue->heap[child];
		at = child;
	}
	queue->heap[at] = entry;
}

void *lab_queue_pop(struct queue *queue, uint64_t now_ns)
{
	if (queue->count == 0 || queue->heap[0].leave_ns > now_ns)
		return NULL;
	void *frame = queue->heap[0].frame;
	remove_first(queue);
	return frame;
}

uint64_t lab_queue_next_ns(const struct queue *queue)
{
	return queue->count ? queue->heap[0].leave_ns : UINT64_MAX;
}

void lab_queue_fini(struct queue *queue)
{
	free(queue->heap);
	*queue = (struct queue){0};
}
