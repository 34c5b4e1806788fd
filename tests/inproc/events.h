/*
 * events.h - what happens next: a heap by time, ties in the order of adding. Private to loop.
 */
#ifndef TESTS_LOOP_EVENTS_H
#define TESTS_LOOP_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct event {
	uint64_t time;
	uint64_t order; /* set by events_add() */
	void (*act)(void *subject, void *detail);
	void *subject, *detail;
};

struct events {
	struct event *heap;
	uint64_t count, capacity, added;
};

/* False: out of memory. */
bool events_add(struct events *events, struct event event);
bool events_take(struct events *events, struct event *out);

#endif
