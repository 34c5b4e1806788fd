/*
 * flood_filter.h - which words have been heard already, of those that every rank passes on to all.
 *
 * A word goes around the overlay until everybody has heard it, and must be known for as long as it may come back, however many others are on the way: with room for
 * the last 64 of them, more than 64 at once went around for ever. So what was heard within the last seconds is kept, whatever room that takes.
 */
#ifndef NODE_CONTROL_FLOOD_FILTER_H
#define NODE_CONTROL_FLOOD_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define FLOOD_NAME_BYTES 40u
#define FLOOD_KEPT_NS (10 * NS_PER_S) /* at least, since it was heard last; twice that at most */

struct flood_filter_set {
	struct flood_filter_entry *entries; /* by hash, open */
	uint32_t room, count;       /* room: a power of two, or 0 */
};

/* Zeroed: nothing was heard. */
struct flood_filter {
	struct flood_filter_set young, old;
	uint64_t turned_ns; /* when what was young became old */
};

/* Is it new? Then it is not any more. If memory is short what was heard earlier is forgotten. */
bool flood_filter_hear(struct flood_filter *news, const uint8_t name[FLOOD_NAME_BYTES], uint64_t now_ns);
void flood_filter_free(struct flood_filter *news);

#endif
