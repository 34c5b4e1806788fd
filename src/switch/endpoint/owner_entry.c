/*
 * owner_entry.c - entries: the numbers that an owner knows, from the first contribution until they are forgotten.
 */
#include <assert.h>
#include <string.h>

#include "switch/endpoint/owner_state.h"

static const uint8_t entry_moves[] = {
	[ENTRY_FREE] = 1u << ENTRY_OPEN,
	[ENTRY_OPEN] = 1u << ENTRY_COMPLETE,
	[ENTRY_COMPLETE] = 1u << ENTRY_FREE,
};

void owner_entry_enter(struct entry *entry, enum entry_state to)
{
	assert(entry_moves[entry->state] & 1u << to);
	entry->state = (uint8_t)to;
}

struct entry *owner_entry(const struct owner *owner, uint32_t sequence)
{
	return &owner->entries[sequence & (owner->entry_count - 1)];
}

struct element owner_element(const struct owner *owner, const struct entry *entry)
{
	assert(entry->buffer < owner->config.elements);
	return (struct element){
		.held = owner->held + (size_t)entry->buffer * shape_groups(owner->config.shape),
		.words = owner->words + (size_t)entry->buffer * owner->config.words_max,
	};
}

void owner_entry_clear(struct owner *owner, struct entry *entry)
{
	memset(owner_element(owner, entry).held, 0, 8 * (size_t)shape_groups(owner->config.shape));
}

static void forget(struct owner *owner, struct entry *entry)
{
	owner_entry_enter(entry, ENTRY_FREE);
	owner->free_buffers[owner->free_count++] = entry->buffer;
	entry->buffer = OWNER_NO_BUFFER;
	entry->pending = PENDING_NONE;
	if (owner_is_head(owner, entry))
		owner->spread_at = 0;
}

bool owner_entry_has(const struct entry *entry, const struct contents *contents)
{
	return entry->call == contents->call && entry->words == contents->words && entry->scale == contents->scale &&
	    entry->kind == contents->kind;
}

void owner_entry_set(struct entry *entry, const struct contents *contents)
{
	entry->sequence = contents->sequence;
	entry->call = contents->call;
	entry->words = contents->words;
	entry->scale = contents->scale;
	entry->kind = contents->kind;
}

void owner_forget_up_to(struct owner *owner, uint32_t end)
{
	for (; owner->kept_from < end; owner->kept_from++) {
		struct entry *entry = owner_entry(owner, owner->kept_from);
		if (entry->state == ENTRY_COMPLETE && entry->sequence == owner->kept_from)
			forget(owner, entry);
	}
}

/*
 * O5: a member that contributes to a number has all results up to that number minus a window, from any owner. So all
 * members have contributed to those, and have all results up to the number minus two windows.
 */
static void forget_before(struct owner *owner, uint32_t sequence)
{
	if (sequence >= owner->entry_count)
		owner_forget_up_to(owner, sequence - owner->entry_count + 1);
}

struct entry *owner_entry_open(struct owner *owner, const struct contents *contents, enum owner_event *out_why)
{
	struct entry *entry = owner_entry(owner, contents->sequence);

	if (entry->state != ENTRY_FREE && entry->sequence == contents->sequence)
		return entry;
	*out_why = OWNER_FORGOTTEN;
	if (contents->sequence < owner->kept_from || (entry->state != ENTRY_FREE && contents->sequence < entry->sequence))
		return NULL;
	*out_why = OWNER_FULL;
	forget_before(owner, contents->sequence);
	if (entry->state != ENTRY_FREE || owner->free_count == 0)
		return NULL;
	owner_entry_enter(entry, ENTRY_OPEN);
	entry->buffer = owner->free_buffers[--owner->free_count];
	entry->has_own = entry->is_marked = entry->is_repaired = entry->is_bypassed = false;
	entry->own = NULL;
	entry->answers = entry->bypasses = 0;
	entry->ask_at = 1;
	owner_entry_set(entry, contents);
	owner_entry_clear(owner, entry);
	return entry;
}
