#include "node/control/flood_filter.h"

#include <stdlib.h>
#include <string.h>

#include "wire/crc32c.h"

#define ROOM_LEAST 64u

struct flood_filter_entry {
	bool is_taken;
	uint8_t name[FLOOD_NAME_BYTES];
};

/* The entry of this name, or the free one where it belongs. The set has room. */
static struct flood_filter_entry *find(const struct flood_filter_set *set, const uint8_t *name)
{
	uint32_t at = crc32c(0, name, FLOOD_NAME_BYTES);

	while (set->entries[at & (set->room - 1)].is_taken &&
	       memcmp(set->entries[at & (set->room - 1)].name, name, FLOOD_NAME_BYTES) != 0)
		at++;
	return &set->entries[at & (set->room - 1)];
}

static bool has(const struct flood_filter_set *set, const uint8_t *name)
{
	return set->room > 0 && find(set, name)->is_taken;
}

static void clear(struct flood_filter_set *set)
{
	free(set->entries);
	*set = (struct flood_filter_set){0};
}

/* Keeps at least half of the set free. False: no memory. */
static bool make_room(struct flood_filter_set *set)
{
	if (2 * set->count < set->room)
		return true;
	struct flood_filter_set wide = {.room = set->room ? 2 * set->room : ROOM_LEAST, .count = set->count};
	wide.entries = calloc(wide.room, sizeof(*wide.entries));
	if (!wide.entries)
		return false;
	for (uint32_t i = 0; i < set->room; i++) {
		if (set->entries[i].is_taken)
			*find(&wide, set->entries[i].name) = set->entries[i];
	}
	free(set->entries);
	*set = wide;
	return true;
}

static void add(struct flood_filter *filter, const uint8_t *name)
{
	if (!make_room(&filter->recent)) {
		clear(&filter->older);
		if (!make_room(&filter->recent))
			clear(&filter->recent);
		if (filter->recent.room == 0 && !make_room(&filter->recent))
			return;
	}
	struct flood_filter_entry *entry = find(&filter->recent, name);
	entry->is_taken = true;
	memcpy(entry->name, name, FLOOD_NAME_BYTES);
	filter->recent.count++;
}

bool control_flood_filter_hear(struct flood_filter *filter, const uint8_t name[FLOOD_NAME_BYTES], uint64_t now_ns)
{
	if (now_ns - filter->turned_ns >= FLOOD_KEPT_NS) {
		clear(&filter->older);
		if (now_ns - filter->turned_ns >= 2 * FLOOD_KEPT_NS)
			clear(&filter->recent); /* everything in it is older than that */
		filter->older = filter->recent;
		filter->recent = (struct flood_filter_set){0};
		filter->turned_ns = now_ns;
	}
	if (has(&filter->recent, name))
		return false;
	bool is_known = has(&filter->older, name);
	add(filter, name); /* a message that is still forwarded is kept */
	return !is_known;
}

void control_flood_filter_free(struct flood_filter *filter)
{
	clear(&filter->recent);
	clear(&filter->older);
}
