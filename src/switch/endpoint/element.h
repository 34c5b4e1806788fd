/*
 * element.h - an owner's part of one number: the contributors so far, and their sum.
 *
 * The merge rule (O3 in docs/protocol/atp.md): a packet whose contributors are disjoint from those held is added; one
 * that has all of them and more replaces them; any other is dropped. So no contribution is ever counted twice, whatever
 * was lost, repeated or reordered.
 *
 * Pure; the caller owns the memory.
 */
#ifndef SWITCH_ENDPOINT_ELEMENT_H
#define SWITCH_ENDPOINT_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/endpoint/shape.h"

struct element {
	uint64_t *held;  /* by group: its children; shape_groups() of them, zeroed at first */
	uint32_t *words; /* meaningless while nothing is held */
};

enum element_event {
	ELEMENT_ADDED,
	ELEMENT_REPLACED, /* the packet had all that was held, and it was taken instead */
	ELEMENT_OVERLAPS, /* dropped: it has some of what is held, or nothing new */
};

/* The header is a valid gradient that fits the shape; its words are at any address. */
enum element_event element_take(struct element *element, const struct shape *shape, const struct atp_packet *packet,
                                const void *words);

/* Has it the contributions of all contributors of this owner? */
bool element_is_complete(const struct element *element, const struct shape *shape, uint16_t owner);

#endif
