#include "node/control/flood_filter.h"

#include <stdlib.h>
#include <string.h>

#include "wire/crc32c.h"

#define ROOM_LEAST 64u

struct flood_filter_entry {
	bool is_taken;
	uint8_t name[FLOOD_NAME_BYTES];
};

/* Where it is, or where it belongs. The set has room. */
static struct flood_filter_entry *find(const struct flood_filter_set *set, const uint8_t *name)
{
	uint32_t at = crc32c(0, name, FLOOD_NAME_BYTES);

	while (set->entries[at & (set->room - 1)].is_taken && memcmp(set->entries[at & (set->room - 1)].name, name, FLOOD_NAME_BYTES) != 0)
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

/* At most half of it is taken. False: no memory. */
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

static void add(struct flood_filter *news, const uint8_t *name)
{
	if (!make_room(&news->young)) {
		clear(&news->old);
		if (!make_room(&news->young))
			clear(&news->young);
		if (news->young.room == 0 && !make_room(&news->young))
			return;
	}
	struct flood_filter_entry *entry = find(&news->young, name);
	entry->is_taken = true;
	memcpy(entry->name, name, FLOOD_NAME_BYTES);
	news->young.count++;
}

bool flood_filter_hear(struct flood_filter *news, const uint8_t name[FLOOD_NAME_BYTES], uint64_t now_ns)
{
	if (now_ns - news->turned_ns >= FLOOD_KEPT_NS) {
		clear(&news->old);
		if (now_ns - news->turned_ns >= 2 * FLOOD_KEPT_NS)
			clear(&news->young); /* nothing was heard for so long */
		news->old = news->young;
		news->young = (struct flood_filter_set){0};
		news->turned_ns = now_ns;
	}
	if (has(&news->young, name))
		return false;
	bool is_known = has(&news->old, name);
	add(news, name); /* what still goes around is kept */
	return !is_known;
}

void flood_filter_free(struct flood_filter *news)
{
	clear(&news->young);
	clear(&news->old);
}
