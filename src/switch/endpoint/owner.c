#include "switch/endpoint/owner_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "math/math.h"

/* ---- life ---- */

uint64_t owner_bytes(const struct owner_config *config)
{
	return (uint64_t)config->elements * (4 * (uint64_t)config->words_max + 8 * (uint64_t)shape_groups(config->shape));
}

static bool allocate(struct owner *owner)
{
	const struct owner_config *config = &owner->config;

	owner->entries = calloc(owner->entry_count, sizeof(*owner->entries));
	owner->queue = calloc(owner->entry_count, sizeof(*owner->queue));
	owner->free_buffers = calloc(config->elements, sizeof(*owner->free_buffers));
	owner->held = calloc((size_t)config->elements * shape_groups(config->shape), sizeof(*owner->held));
	owner->words = calloc((size_t)config->elements * config->words_max, sizeof(*owner->words));
	owner->done = calloc(shape_members(config->shape), sizeof(*owner->done));
	return owner->entries && owner->queue && owner->free_buffers && owner->held && owner->words && owner->done;
}

enum esp_status owner_open(const struct owner_config *config, struct owner **out, struct error *err)
{
	struct owner *owner = calloc(1, sizeof(*owner));

	assert(config->window >= 1 && (config->window & (config->window - 1)) == 0 && config->words_max <= ATP_WORDS_MAX);
	assert(config->elements >= 1 && config->elements <= 2 * config->window);
	if (owner) {
		owner->config = *config;
		owner->entry_count = 2 * config->window;
	}
	if (!owner || !allocate(owner)) {
		owner_close(owner);
		return error_set(err, ESP_ENOMEM, "no memory for %u elements of %u words", config->elements, config->words_max);
	}
	for (uint32_t i = 0; i < config->elements; i++)
		owner->free_buffers[owner->free_count++] = i;
	for (uint32_t i = 0; i < owner->entry_count; i++)
		owner->entries[i].buffer = OWNER_NO_BUFFER;
	owner->uses_switch = true;
	*out = owner;
	return ESP_OK;
}

void owner_close(struct owner *owner)
{
	if (!owner)
		return;
	free(owner->entries);
	free(owner->queue);
	free(owner->free_buffers);
	free(owner->held);
	free(owner->words);
	free(owner->done);
	free(owner);
}

/* ---- completion ---- */

static bool has_own_part(const struct owner *owner)
{
	return owner->config.self < shape_members(owner->config.shape);
}

static bool complete(struct owner *owner, struct entry *entry)
{
	struct element element = owner_element(owner, entry);

	if ((has_own_part(owner) && !entry->has_own) ||
	    !element_is_complete(&element, owner->config.shape, owner->config.self))
		return false;
	if (entry->own && shape_members(owner->config.shape) == 1)
		memcpy(element.words, entry->own, 4 * (size_t)entry->words);
	else if (entry->own)
		math_fold(ESP_U32, ESP_SUM)(element.words, element.words, entry->own, entry->words);
	entry->own = NULL;
	owner_entry_enter(entry, ENTRY_COMPLETE);
	owner->last = entry->sequence + 1 > owner->last ? entry->sequence + 1 : owner->last;
	if (shape_members(owner->config.shape) - has_own_part(owner) > 0)
		owner_queue_result(owner, entry, entry->is_bypassed ? PENDING_BOTH : PENDING_ALL, 0, false);
	/* O5: all members have contributed to it, and so have all results up to it minus a window. */
	if (entry->sequence >= owner->config.window)
		owner_forget_up_to(owner, entry->sequence - owner->config.window + 1);
	return true;
}

/* ---- contributions ---- */

static struct contents contents_of(const struct atp_packet *packet)
{
	return (struct contents){packet->sequence, packet->call, packet->words, packet->scale, packet->kind};
}

/* The member that sent it, if it is one member's alone. */
static bool single_member(const struct owner *owner, const struct atp_packet *packet, uint16_t *out)
{
	return packet->hop == 0 && (packet->bitmap & (packet->bitmap - 1)) == 0 &&
	       shape_member(owner->config.shape, packet->owner, packet->group, (uint8_t)__builtin_ctzll(packet->bitmap),
	                    out);
}

static bool is_right(const struct owner *owner, const struct atp_packet *packet, const void *words)
{
	const struct owner_config *config = &owner->config;

	return packet->type == ATP_GRADIENT && packet->flow == config->flow && packet->owner == config->self &&
	    packet->words <= config->words_max &&
	       shape_fits(config->shape, packet) && tag_gradient_right(config->keys, config->shape, packet, words);
}

/*
 * O2. A late original needs no answer: its sender has not asked. A sum may stand for members that asked through a
 * switch.
 */
static enum owner_event answer(struct owner *owner, struct entry *entry, const struct atp_packet *packet)
{
	uint16_t member = 0;
	bool is_single = single_member(owner, packet, &member);

	if (is_single && !(packet->flags & ATP_RESEND))
		return OWNER_COMPLETE;
	/* O2: to a member that asks through the switch straight first, and then in turn: either way may be closed. */
	bool is_straight = (packet->flags & ATP_BYPASS) != 0,
		 is_one = is_single && (is_straight || entry->answers++ % 2 == 0);
	owner_queue_result(owner, entry, is_one ? PENDING_ONE : PENDING_ALL, member, is_straight);
	return OWNER_ANSWERED;
}

static uint32_t members_held(const struct owner *owner, const struct entry *entry)
{
	uint32_t count = 0;

	for (uint32_t group = 0; group < shape_groups(owner->config.shape); group++)
		count += (uint32_t)__builtin_popcountll(owner_element(owner, entry).held[group]);
	return count;
}

/* O6: once for all members that wait, and again when as many have sent again. */
static void ask(struct owner *owner, struct entry *entry, const struct atp_packet *packet)
{
	if (entry->state != ENTRY_OPEN || !(packet->flags & ATP_BYPASS) || ++entry->bypasses < entry->ask_at)
		return;
	entry->ask_at = entry->bypasses + members_held(owner, entry);
	entry->pending = PENDING_ASK;
	owner_queue_push(owner, entry);
}

static enum owner_event take(struct owner *owner, struct entry *entry, const struct atp_packet *packet,
                             const void *words)
{
	struct element element = owner_element(owner, entry);
	enum element_event event = element_take(&element, owner->config.shape, packet, words);
	uint16_t member;

	if (event == ELEMENT_OVERLAPS)
		return OWNER_OVERLAPS;
	owner->counters.taken += single_member(owner, packet, &member);
	entry->is_marked |= (packet->flags & ATP_MARK) != 0;
	entry->is_repaired |= (packet->flags & (ATP_RESEND | ATP_COLLISION)) == ATP_RESEND;
	entry->is_bypassed |= (packet->flags & ATP_BYPASS) != 0;
	if (complete(owner, entry))
		return OWNER_COMPLETED;
	return event == ELEMENT_REPLACED ? OWNER_REPLACED : OWNER_ADDED;
}

static enum owner_event packet_event(struct owner *owner, const struct atp_packet *packet, const void *words)
{
	struct contents contents = contents_of(packet);
	enum owner_event why;

	if (!is_right(owner, packet, words))
		return OWNER_REFUSED;
	struct entry *entry = owner_entry_open(owner, &contents, &why);
	if (!entry)
		return why;
	if (!owner_entry_has(entry, &contents))
		return OWNER_REFUSED;
	if (entry->state == ENTRY_COMPLETE)
		return answer(owner, entry, packet);
	why = take(owner, entry, packet, words);
	ask(owner, entry, packet);
	return why;
}

enum owner_event owner_packet(struct owner *owner, const struct atp_packet *packet, const void *words)
{
	enum owner_event event = packet_event(owner, packet, words);
	owner->counters.events[event]++;
	return event;
}

enum owner_event owner_own(struct owner *owner, uint32_t sequence, const struct owner_part *part)
{
	struct contents contents = {sequence, part->call, part->count, part->scale, part->kind};
	enum owner_event why;

	assert(has_own_part(owner) && part->count >= 1 && part->count <= owner->config.words_max &&
	       sequence >= owner->kept_from);
	struct entry *entry = owner_entry_open(owner, &contents, &why);
	if (!entry)
		return OWNER_FULL;
	assert(entry->state == ENTRY_OPEN && !entry->has_own);
	if (!owner_entry_has(entry, &contents)) {
		owner_entry_clear(owner, entry);
		owner_entry_set(entry, &contents);
		owner->counters.overruled++;
	}
	entry->has_own = true;
	entry->own = part->words;
	return complete(owner, entry) ? OWNER_COMPLETED : OWNER_ADDED;
}

const uint32_t *owner_sum(const struct owner *owner, uint32_t sequence)
{
	const struct entry *entry = owner_entry(owner, sequence);
	return entry->state == ENTRY_COMPLETE && entry->sequence == sequence ? owner_element(owner, entry).words : NULL;
}

/* ---- the end of a flow ---- */

static uint32_t done_by_all(const struct owner *owner)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t member = 0; member < shape_members(owner->config.shape); member++)
		if (member != owner->config.self && owner->done[member] < least)
			least = owner->done[member];
	return least;
}

void owner_bye(struct owner *owner, const struct atp_packet *packet)
{
	uint16_t member = packet->owner;

	if (packet->type != ATP_BYE || !(packet->flags & ATP_DONE) || packet->flow != owner->config.flow ||
	    member >= shape_members(owner->config.shape) || packet->tag != tag_of_bye(owner->config.keys, packet))
		return;
	if (packet->sequence > owner->done[member])
		owner->done[member] = packet->sequence;
	uint32_t all = done_by_all(owner);
	owner_forget_up_to(owner, all < owner->last ? all : owner->last);
}

bool owner_is_quiet(const struct owner *owner)
{
	return done_by_all(owner) >= owner->last;
}

bool owner_is_done(const struct owner *owner, uint16_t member)
{
	assert(member < shape_members(owner->config.shape));
	return member == owner->config.self || owner->done[member] >= owner->last;
}

void owner_linger(struct owner *owner)
{
	struct entry *entry = owner->last > 0 ? owner_entry(owner, owner->last - 1) : NULL;

	if (!entry || entry->state != ENTRY_COMPLETE || entry->sequence != owner->last - 1)
		return;
	bool is_straight = owner->lingers++ % 2 == 0 || !owner->uses_switch;
	for (uint32_t member = 0; member < shape_members(owner->config.shape); member++)
		if (member != owner->config.self && owner->done[member] < owner->last)
			owner_queue_result(owner, entry, is_straight ? PENDING_ONE : PENDING_ALL, (uint16_t)member, is_straight);
}

/* ---- for people ---- */

const struct owner_counters *owner_counters(const struct owner *owner)
{
	return &owner->counters;
}

void owner_counters_add(struct owner_counters *to, const struct owner_counters *more)
{
	for (int i = 0; i < OWNER_EVENTS; i++)
		to->events[i] += more->events[i];
	to->taken += more->taken;
	to->asked += more->asked;
	to->overruled += more->overruled;
}

uint32_t owner_elements_held(const struct owner *owner)
{
	return owner->config.elements - owner->free_count;
}

const char *owner_event_name(enum owner_event event)
{
	static const char *const names[OWNER_EVENTS] = {"refused", "answered", "complete", "forgotten", "added", "replaced",
	                                                "overlaps", "completed", "full"};
	assert((unsigned)event < OWNER_EVENTS);
	return names[event];
}
