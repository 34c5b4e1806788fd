/*
 * flood_filter.h - remembers messages that every rank forwards, so that each rank forwards each of them once. No I/O;
 * the owner locks it.
 *
 * A message goes around the overlay until every rank has it, and must be known for as long as it may come back, however
 * many others are under way: with room for the last 64 messages, more than 64 at once went around for ever. So messages
 * of the last seconds are kept, whatever memory that takes.
 */
#ifndef NODE_CONTROL_FLOOD_FILTER_H
#define NODE_CONTROL_FLOOD_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define FLOOD_NAME_BYTES 40u
#define FLOOD_KEPT_NS (10 * NS_PER_S) /* at least, since the message last came; at most twice that */

struct flood_filter_set {
	struct flood_filter_entry *entries; /* a hash table with open addressing */
	uint32_t room, count;       /* room: a power of two, or 0 */
};

/* Zeroed: empty. */
struct flood_filter {
	struct flood_filter_set recent, older;
	uint64_t turned_ns; /* when `recent` last became `older` */
};

/* True if the message is new; it is known from now on. If memory is short, earlier messages are forgotten. */
bool control_flood_filter_hear(struct flood_filter *filter, const uint8_t name[FLOOD_NAME_BYTES], uint64_t now_ns);
void control_flood_filter_free(struct flood_filter *filter);

#endif
