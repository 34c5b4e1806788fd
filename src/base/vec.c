#include "base/vec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 16u /* items of the first allocation: most arrays that begin with one item have some more soon */

static size_t grown_room(size_t room, size_t needed)
{
	size_t wanted = 2 * room; /* if it wraps it is less than room, and needed is not */

	if (wanted < needed)
		wanted = needed;
	return wanted < LEAST ? LEAST : wanted;
}

bool vec_grow(void *array, size_t *room, size_t needed, size_t item_bytes)
{
	size_t wanted = grown_room(*room, needed), bytes;
	void *items;

	assert(needed > *room && item_bytes > 0);
	if (__builtin_mul_overflow(wanted, item_bytes, &bytes))
		return false;
	memcpy(&items, array, sizeof(items)); /* the owner's pointer has another type */
	assert(items || *room == 0);
	items = realloc(items, bytes);
	if (!items)
		return false;
	memcpy(array, &items, sizeof(items));
	*room = wanted;
	return true;
}
