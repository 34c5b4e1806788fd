#include "sim/agenda.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHILDREN 4u /* of an entry of the heap: fewer levels, and siblings lie together */

void agenda_fini(struct agenda *agenda)
{
	free(agenda->entries);
	free(agenda->last);
	*agenda = (struct agenda){0};
}

static bool make_room(struct agenda *agenda, struct agenda_entry **entries, size_t count, size_t *capacity)
{
	if (count < *capacity)
		return true;
	size_t wanted = *capacity ? *capacity * 2 : 64;
	struct agenda_entry *larger = realloc(*entries, wanted * sizeof(*larger));
	if (!larger) {
		agenda->failed = true;
		return false;
	}
	*entries = larger;
	*capacity = wanted;
	return true;
}

static bool is_before(const struct agenda_entry *a, const struct agenda_entry *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void agenda_at(struct agenda *agenda, double at, agenda_fn *call, void *user)
{
	struct agenda_entry entry = {at, agenda->order++, call, user};

	assert(at >= agenda->now);
	if (!make_room(agenda, &agenda->entries, agenda->count, &agenda->capacity))
		return;
	size_t place = agenda->count++;
	while (place > 0) {
		size_t parent = (place - 1) / CHILDREN;

		if (!is_before(&entry, &agenda->entries[parent]))
			break;
		agenda->entries[place] = agenda->entries[parent];
		place = parent;
	}
	agenda->entries[place] = entry;
}

void agenda_at_last(struct agenda *agenda, agenda_fn *call, void *user)
{
	if (make_room(agenda, &agenda->last, agenda->last_count, &agenda->last_capacity))
		agenda->last[agenda->last_count++] = (struct agenda_entry){agenda->now, agenda->order++, call, user};
}

static struct agenda_entry take_first(struct agenda *agenda)
{
	struct agenda_entry *entries = agenda->entries, first = entries[0], moved = entries[--agenda->count];
	size_t place = 0, count = agenda->count;

	for (;;) {
		size_t child = place * CHILDREN + 1, end = child + CHILDREN < count ? child + CHILDREN : count;
		size_t least = child;

		if (child >= count)
			break;
		for (size_t i = child + 1; i < end; i++) {
			if (is_before(&entries[i], &entries[least]))
				least = i;
		}
		if (!is_before(&entries[least], &moved))
			break;
		entries[place] = entries[least];
		place = least;
	}
	entries[place] = moved;
	return first;
}

static struct agenda_entry take_last(struct agenda *agenda)
{
	struct agenda_entry entry = agenda->last[0];

	agenda->last_count--;
	memmove(agenda->last, agenda->last + 1, agenda->last_count * sizeof(entry));
	return entry;
}

enum esp_status agenda_run(struct agenda *agenda, double until, struct error *err)
{
	while (!agenda->failed) {
		bool is_due_now = agenda->count > 0 && agenda->entries[0].at == agenda->now;
		struct agenda_entry entry;

		if (!is_due_now && agenda->last_count > 0)
			entry = take_last(agenda);
		else if (is_due_now || (agenda->count > 0 && agenda->entries[0].at <= until))
			entry = take_first(agenda);
		else
			break;
		agenda->now = entry.at;
		agenda->happened++;
		entry.call(entry.user);
	}
	if (agenda->failed)
		return error_set(err, ESP_ENOMEM, "no memory for what is under way in the simulation");
	if (until > agenda->now && until < INFINITY)
		agenda->now = until;
	return ESP_OK;
}
