#include "inproc/events.h"

#include <stdlib.h>

static bool before(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

bool events_add(struct events *events, struct event event)
{
	if (events->count == events->capacity) {
		uint64_t capacity = events->capacity ? events->capacity * 2 : 1024;
		struct event *heap = realloc(events->heap, capacity * sizeof(*heap));

		if (!heap)
			return false;
		events->heap = heap;
		events->capacity = capacity;
	}
	uint64_t at = events->count++;
	event.order = events->added++;
	while (at > 0 && before(&event, &events->heap[(at - 1) / 2])) {
		events->heap[at] = events->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	events->heap[at] = event;
	return true;
}

bool events_take(struct events *events, struct event *out)
{
	if (events->count == 0)
		return false;
	*out = events->heap[0];
	struct event last = events->heap[--events->count];
	uint64_t at = 0;
	for (;;) {
		uint64_t child = at * 2 + 1;

		if (child + 1 < events->count && before(&events->heap[child + 1], &events->heap[child]))
			child++;
		if (child >= events->count || !before(&events->heap[child], &last))
			break;
		events->heap[at] = events->heap[child];
		at = child;
	}
	if (events->count > 0)
		events->heap[at] = last;
	return true;
}
