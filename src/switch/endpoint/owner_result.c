/*
 * owner_result.c - the packets that an owner sends: results, and questions for contributions that are missing.
 */
#include <assert.h>

#include "switch/endpoint/owner_state.h"

bool owner_is_head(const struct owner *owner, const struct entry *entry)
{
	return owner->queue_count > 0 && &owner->entries[owner->queue[owner->queue_head]] == entry;
}

void owner_queue_push(struct owner *owner, struct entry *entry)
{
	if (entry->is_queued)
		return;
	assert(owner->queue_count < owner->entry_count);
	entry->is_queued = true;
	owner->queue[(owner->queue_head + owner->queue_count++) & (owner->entry_count - 1)] =
	    entry->sequence & (owner->entry_count - 1);
}

void owner_queue_result(struct owner *owner, struct entry *entry, enum pending receivers, uint16_t asker,
                         bool is_straight)
{
	assert(entry->state == ENTRY_COMPLETE && receivers >= PENDING_ONE);
	if (entry->pending == PENDING_ASK && owner_is_head(owner, entry))
		owner->spread_at = 0;
	if (entry->pending < PENDING_ONE) {
		entry->pending = (uint8_t)receivers;
		entry->is_straight = false;
	} else if (entry->pending == PENDING_ONE && (receivers == PENDING_ALL || asker != entry->asker)) {
		bool is_any = entry->is_straight || is_straight;
		entry->pending = !is_any ? PENDING_ALL : receivers == PENDING_ALL ? PENDING_BOTH : PENDING_EACH;
	} else if (entry->pending == PENDING_ALL && is_straight &&
	           (!owner_is_head(owner, entry) || owner->spread_at == 0)) {
		entry->pending = PENDING_BOTH;
	}
	entry->is_straight |= is_straight;
	entry->asker = asker;
	owner_queue_push(owner, entry);
}

static void queue_pop(struct owner *owner, struct entry *entry)
{
	entry->is_queued = false;
	entry->pending = PENDING_NONE;
	owner->spread_at = 0;
	owner->queue_head = (owner->queue_head + 1) & (owner->entry_count - 1);
	owner->queue_count--;
}

static void write_result(const struct owner *owner, const struct entry *entry, struct endpoint_out *out)
{
	struct element element = owner_element(owner, entry);

	*out = (struct endpoint_out){
		.header = {
			.type = ATP_RESULT, .scale = entry->scale, .kind = entry->kind, .owner = owner->config.self,
			.words = entry->words, .next = ATP_NO_NEXT, .sequence = entry->sequence, .call = entry->call,
			.flow = owner->config.flow,
		},
		.words = element.words,
		.to = ENDPOINT_TO_SWITCH,
	};
	if (entry->is_marked)
		out->header.flags |= ATP_MARK;
	if (entry->is_repaired)
		out->header.flags |= ATP_RESEND;
	out->header.tag = tag_of_result(owner->config.keys, &out->header, element.words);
}

static void send_to(struct endpoint_out *out, uint16_t member)
{
	out->header.flags |= ATP_BYPASS;
	out->to = ENDPOINT_TO_MEMBER;
	out->member = member;
}

/* One member after the other; false: all have it. */
static bool spread_result(struct owner *owner, struct entry *entry, struct endpoint_out *out)
{
	if (owner->spread_at == owner->config.self)
		owner->spread_at++;
	if (owner->spread_at >= shape_members(owner->config.shape))
		return false;
	write_result(owner, entry, out);
	send_to(out, (uint16_t)owner->spread_at++);
	return true;
}

static bool is_missing(const struct owner *owner, const struct entry *entry, uint16_t member)
{
	struct shape_place place = shape_place(owner->config.shape, owner->config.self, member);
	return !(owner_element(owner, entry).held[place.group] >> place.child & 1);
}

/* O6, one member after the other; false: all are asked. */
static bool spread_ask(struct owner *owner, const struct entry *entry, struct endpoint_out *out)
{
	for (; owner->spread_at < shape_members(owner->config.shape); owner->spread_at++) {
		uint16_t member = (uint16_t)owner->spread_at;
		if (member == owner->config.self || !is_missing(owner, entry, member))
			continue;
		*out = (struct endpoint_out){
			.header = {
				.type = ATP_ASK, .owner = owner->config.self, .next = ATP_NO_NEXT, .sequence = entry->sequence,
				.flow = owner->config.flow,
			},
		};
		out->header.tag = tag_of_ask(owner->config.keys, &out->header);
		send_to(out, member);
		owner->spread_at++;
		owner->counters.asked++;
		return true;
	}
	return false;
}

/* The next packet for an entry; false: there is none (any more). */
static bool next_of(struct owner *owner, struct entry *entry, struct endpoint_out *out)
{
	if (entry->pending == PENDING_ASK)
		return entry->state == ENTRY_OPEN && spread_ask(owner, entry, out);
	if (entry->state != ENTRY_COMPLETE || entry->pending == PENDING_NONE)
		return false;
	if (entry->pending == PENDING_BOTH) {
		entry->pending = PENDING_EACH;
		if (owner->uses_switch) {
			write_result(owner, entry, out);
			return true;
		}
	}
	if (entry->pending == PENDING_EACH ||
	    (entry->pending == PENDING_ALL && (!owner->uses_switch || owner->spread_at > 0)))
		return spread_result(owner, entry, out);
	write_result(owner, entry, out);
	if (entry->pending == PENDING_ONE)
		send_to(out, entry->asker);
	entry->pending = PENDING_NONE;
	return true;
}

bool owner_next(struct owner *owner, struct endpoint_out *out)
{
	while (owner->queue_count > 0) {
		struct entry *entry = &owner->entries[owner->queue[owner->queue_head]];
		if (next_of(owner, entry, out))
			return true;
		queue_pop(owner, entry);
	}
	return false;
}

void owner_use_switch(struct owner *owner, bool use)
{
	owner->uses_switch = use;
}
