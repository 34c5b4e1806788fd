/*
 * vec.h - arrays that grow: an array, its room and its count stay three variables of their owner.
 *
 * The room is the number of items that the array's memory has space for. Zeroed variables are an empty array, free()
 * releases it, and the owner counts the items that are in use. Pure but for memory; one thread at a time per array.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

/* The part of vec_reserve() that allocates; needed > *room. */
bool vec_grow(void *array, size_t *room, size_t needed, size_t item_bytes) __attribute__((cold, noinline));

/*
 * Makes room for `needed` items of item_bytes > 0 each. array: the address of the owner's pointer to the items, of any
 * type. An array that grows has at least twice the room afterwards, so it may be called for one item more each time.
 * The items may move, and new ones are not set. The new room follows from the old one and from needed alone, so arrays
 * that are grown alike have the same room. False: no memory, or more bytes than size_t counts; array and room are as
 * they were.
 */
static inline bool vec_reserve(void *array, size_t *room, size_t needed, size_t item_bytes)
{
	return needed <= *room || vec_grow(array, room, needed, item_bytes);
}

#endif
