#include "node/control/unreachable.h"

#include <stdio.h>

#include "base/clip.h"

static struct unreachable *find(struct unreachable_list *list, uint32_t rank)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->all[i].rank == rank)
			return &list->all[i];
	}
	return NULL;
}

void unreachable_note(struct unreachable_list *list, uint32_t rank, const char *way, bool by_kernel)
{
	struct unreachable *at = find(list, rank);

	if (!at && list->count < UNREACHABLE_MOST)
		at = &list->all[list->count++];
	if (!at)
		return;
	at->rank = rank;
	at->by_kernel = by_kernel;
	snprintf(at->way, sizeof(at->way), "%s", way);
}

bool unreachable_tells(struct unreachable_list *list, uint32_t rank, uint64_t now_ns)
{
	uint32_t recent = 0;

	for (uint32_t i = 0; i < UNREACHABLE_WORDS; i++) {
		bool is_recent = list->told_ns[i] != 0 && now_ns < list->told_ns[i] + UNREACHABLE_HOLDS_NS;

		if (is_recent && list->told[i] == rank)
			return false;
		recent += is_recent;
	}
	if (recent == UNREACHABLE_WORDS) /* enough other ranks were announced */
		return false;
	list->told[list->next] = rank;
	list->told_ns[list->next] = now_ns;
	list->next = (list->next + 1) % UNREACHABLE_WORDS;
	return true;
}

bool unreachable_is_news(uint64_t *heard, uint32_t size, uint32_t by, uint64_t at_ns)
{
	if (by >= size || at_ns <= heard[by])
		return false;
	heard[by] = at_ns;
	return true;
}

void unreachable_forget(struct unreachable_list *list, uint32_t rank)
{
	struct unreachable *at = find(list, rank);

	if (at)
		*at = list->all[--list->count];
}

const struct unreachable *unreachable_find(const struct unreachable_list *list, uint32_t rank)
{
	return find((struct unreachable_list *)(uintptr_t)list, rank);
}

const char *unreachable_text(const struct unreachable *unreached, const char *by, const char *peer,
                             char text[CONTROL_TEXT])
{
	if (unreached->by_kernel)
		return clip(text, CONTROL_TEXT,
		            "%s gets no answer from %s at %s: its host is there, the process is stopped or busy", by, peer,
		            unreached->way);
	return clip(
		text, CONTROL_TEXT,
		"%s gets no answer from %s at %s: does a firewall drop it? Let the port through, or set ESP_PORT to one that "
		"passes; espalier doctor, run as the job is, tries all ways",
		by, peer, unreached->way);
}
