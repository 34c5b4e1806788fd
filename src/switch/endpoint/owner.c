#include "switch/endpoint/owner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "math/math.h"

enum entry_state {
	ENTRY_FREE,     /* nothing is known of the number, or it is forgotten */
	ENTRY_OPEN,     /* contributions or the own part are held             */
	ENTRY_COMPLETE, /* the sum is, and answers members that lost it       */
};

static const uint8_t entry_moves[] = {
	[ENTRY_FREE] = 1u << ENTRY_OPEN,
	[ENTRY_OPEN] = 1u << ENTRY_COMPLETE,
	[ENTRY_COMPLETE] = 1u << ENTRY_FREE,
};

enum pending {
	PENDING_NONE,
	PENDING_ASK, /* of an open entry: to members whose contributions are missing */
	PENDING_ONE, /* of a complete one: the result, to the asker */
	PENDING_ALL,
	PENDING_EACH, /* to all, past the switch: several have asked, and it may not reach one of them */
	PENDING_BOTH, /* through the switch, which frees its slot, and to each: one of them does without it */
};

#define NO_BUFFER UINT32_MAX

struct entry {
	uint32_t sequence;
	uint32_t call;
	uint32_t buffer; /* NO_BUFFER while free */
	uint16_t words;
	uint16_t asker; /* of PENDING_ONE */
	bool is_straight; /* of PENDING_ONE: the asker came past the switch */
	uint8_t scale, kind;
	uint8_t state;   /* enum entry_state */
	uint8_t pending; /* enum pending: waits in the queue */
	bool has_own;
	bool is_marked;
	bool is_repaired; /* a member sent its contribution again */
	bool is_bypassed; /* a contribution came past the switch: its sender may not hear it */
	bool is_queued;
	const uint32_t *own;
	uint32_t bypasses, ask_at; /* straight contributions that have come; asks go out when there are so many */
};

struct owner {
	struct owner_config config;
	uint32_t entry_count; /* 2 * window */
	struct entry *entries; /* of a number: at its remainder */
	uint32_t *free_buffers, free_count;
	uint64_t *held;  /* of a buffer: shape_groups() */
	uint32_t *words; /* of a buffer: words_max */
	uint32_t *queue, queue_head, queue_count; /* places of entries for which packets are to be sent */
	uint32_t spread_at; /* the next member of packets that go out one by one */
	uint32_t kept_from; /* numbers below it are forgotten, or not this owner's */
	uint32_t last;      /* the highest complete number + 1 */
	uint32_t *done;     /* by member: it has all results below */
	bool uses_switch;
	struct owner_counters counters;
};

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
		owner->entries[i].buffer = NO_BUFFER;
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

/* ---- entries ---- */

static void entry_enter(struct entry *entry, enum entry_state to)
{
	assert(entry_moves[entry->state] & 1u << to);
	entry->state = (uint8_t)to;
}

static struct entry *entry_of(const struct owner *owner, uint32_t sequence)
{
	return &owner->entries[sequence & (owner->entry_count - 1)];
}

static struct element element_of(const struct owner *owner, const struct entry *entry)
{
	assert(entry->buffer < owner->config.elements);
	return (struct element){
		.held = owner->held + (size_t)entry->buffer * shape_groups(owner->config.shape),
		.words = owner->words + (size_t)entry->buffer * owner->config.words_max,
	};
}

static void clear_held(struct owner *owner, struct entry *entry)
{
	memset(element_of(owner, entry).held, 0, 8 * (size_t)shape_groups(owner->config.shape));
}

static bool is_head(const struct owner *owner, const struct entry *entry)
{
	return owner->queue_count > 0 && &owner->entries[owner->queue[owner->queue_head]] == entry;
}

static void forget(struct owner *owner, struct entry *entry)
{
	entry_enter(entry, ENTRY_FREE);
	owner->free_buffers[owner->free_count++] = entry->buffer;
	entry->buffer = NO_BUFFER;
	entry->pending = PENDING_NONE;
	if (is_head(owner, entry))
		owner->spread_at = 0;
}

/* Equal in all contributions to a number. */
struct contents {
	uint32_t sequence, call;
	uint16_t words;
	uint8_t scale, kind;
};

static bool entry_has(const struct entry *entry, const struct contents *contents)
{
	return entry->call == contents->call && entry->words == contents->words && entry->scale == contents->scale &&
	    entry->kind == contents->kind;
}

static void set_contents(struct entry *entry, const struct contents *contents)
{
	entry->sequence = contents->sequence;
	entry->call = contents->call;
	entry->words = contents->words;
	entry->scale = contents->scale;
	entry->kind = contents->kind;
}

/* Complete numbers below end; all below are complete, or other owners'. */
static void forget_up_to(struct owner *owner, uint32_t end)
{
	for (; owner->kept_from < end; owner->kept_from++) {
		struct entry *entry = entry_of(owner, owner->kept_from);
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
		forget_up_to(owner, sequence - owner->entry_count + 1);
}

/* The entry of a number, opened if need be. NULL and *out_why: the number is too old, or there is no room. */
static struct entry *entry_open(struct owner *owner, const struct contents *contents, enum owner_event *out_why)
{
	struct entry *entry = entry_of(owner, contents->sequence);

	if (entry->state != ENTRY_FREE && entry->sequence == contents->sequence)
		return entry;
	*out_why = OWNER_FORGOTTEN;
	if (contents->sequence < owner->kept_from || (entry->state != ENTRY_FREE && contents->sequence < entry->sequence))
		return NULL;
	*out_why = OWNER_FULL;
	forget_before(owner, contents->sequence);
	if (entry->state != ENTRY_FREE || owner->free_count == 0)
		return NULL;
	entry_enter(entry, ENTRY_OPEN);
	entry->buffer = owner->free_buffers[--owner->free_count];
	entry->has_own = entry->is_marked = entry->is_repaired = entry->is_bypassed = false;
	entry->own = NULL;
	entry->bypasses = 0;
	entry->ask_at = 1;
	set_contents(entry, contents);
	clear_held(owner, entry);
	return entry;
}

/* ---- results ---- */

static void queue_push(struct owner *owner, struct entry *entry)
{
	if (entry->is_queued)
		return;
	assert(owner->queue_count < owner->entry_count);
	entry->is_queued = true;
	owner->queue[(owner->queue_head + owner->queue_count++) & (owner->entry_count - 1)] =
	    entry->sequence & (owner->entry_count - 1);
}

/* A second member that asks while the first waits makes it a result for all. */
static void queue_result(struct owner *owner, struct entry *entry, enum pending receivers, uint16_t asker,
                         bool is_straight)
{
	assert(entry->state == ENTRY_COMPLETE && receivers >= PENDING_ONE);
	if (entry->pending == PENDING_ASK && is_head(owner, entry))
		owner->spread_at = 0;
	if (entry->pending < PENDING_ONE) {
		entry->pending = (uint8_t)receivers;
		entry->is_straight = false;
	} else if (entry->pending == PENDING_ONE && (receivers == PENDING_ALL || asker != entry->asker)) {
		entry->pending = entry->is_straight || is_straight ? PENDING_EACH : PENDING_ALL;
	}
	entry->is_straight |= is_straight;
	entry->asker = asker;
	queue_push(owner, entry);
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
	struct element element = element_of(owner, entry);

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
	return !(element_of(owner, entry).held[place.group] >> place.child & 1);
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

/* ---- completion ---- */

static bool has_own_part(const struct owner *owner)
{
	return owner->config.self < shape_members(owner->config.shape);
}

static bool complete(struct owner *owner, struct entry *entry)
{
	struct element element = element_of(owner, entry);

	if ((has_own_part(owner) && !entry->has_own) ||
	    !element_is_complete(&element, owner->config.shape, owner->config.self))
		return false;
	if (entry->own && shape_members(owner->config.shape) == 1)
		memcpy(element.words, entry->own, 4 * (size_t)entry->words);
	else if (entry->own)
		math_fold(ESP_U32, ESP_SUM)(element.words, element.words, entry->own, entry->words);
	entry->own = NULL;
	entry_enter(entry, ENTRY_COMPLETE);
	owner->last = entry->sequence + 1 > owner->last ? entry->sequence + 1 : owner->last;
	if (shape_members(owner->config.shape) - has_own_part(owner) > 0)
		queue_result(owner, entry, entry->is_bypassed ? PENDING_BOTH : PENDING_ALL, 0, false);
	/* O5: all members have contributed to it, and so have all results up to it minus a window. */
	if (entry->sequence >= owner->config.window)
		forget_up_to(owner, entry->sequence - owner->config.window + 1);
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
	queue_result(owner, entry, is_single ? PENDING_ONE : PENDING_ALL, member, (packet->flags & ATP_BYPASS) != 0);
	return OWNER_ANSWERED;
}

static uint32_t members_held(const struct owner *owner, const struct entry *entry)
{
	uint32_t count = 0;

	for (uint32_t group = 0; group < shape_groups(owner->config.shape); group++)
		count += (uint32_t)__builtin_popcountll(element_of(owner, entry).held[group]);
	return count;
}

/* O6: once for all members that wait, and again when as many have sent again. */
static void ask(struct owner *owner, struct entry *entry, const struct atp_packet *packet)
{
	if (entry->state != ENTRY_OPEN || !(packet->flags & ATP_BYPASS) || ++entry->bypasses < entry->ask_at)
		return;
	entry->ask_at = entry->bypasses + members_held(owner, entry);
	entry->pending = PENDING_ASK;
	queue_push(owner, entry);
}

static enum owner_event take(struct owner *owner, struct entry *entry, const struct atp_packet *packet,
                             const void *words)
{
	struct element element = element_of(owner, entry);
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
	struct entry *entry = entry_open(owner, &contents, &why);
	if (!entry)
		return why;
	if (!entry_has(entry, &contents))
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
	struct entry *entry = entry_open(owner, &contents, &why);
	if (!entry)
		return OWNER_FULL;
	assert(entry->state == ENTRY_OPEN && !entry->has_own);
	if (!entry_has(entry, &contents)) {
		clear_held(owner, entry);
		set_contents(entry, &contents);
		owner->counters.overruled++;
	}
	entry->has_own = true;
	entry->own = part->words;
	return complete(owner, entry) ? OWNER_COMPLETED : OWNER_ADDED;
}

const uint32_t *owner_sum(const struct owner *owner, uint32_t sequence)
{
	const struct entry *entry = entry_of(owner, sequence);
	return entry->state == ENTRY_COMPLETE && entry->sequence == sequence ? element_of(owner, entry).words : NULL;
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
	forget_up_to(owner, all < owner->last ? all : owner->last);
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
	struct entry *entry = owner->last > 0 ? entry_of(owner, owner->last - 1) : NULL;

	if (!entry || entry->state != ENTRY_COMPLETE || entry->sequence != owner->last - 1)
		return;
	for (uint32_t member = 0; member < shape_members(owner->config.shape); member++)
		if (member != owner->config.self && owner->done[member] < owner->last)
			queue_result(owner, entry, PENDING_ONE, (uint16_t)member, true);
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
