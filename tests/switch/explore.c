#include "explore.h"

#include "base/check.h"
#include "switch/endpoint/sender.h"

#define KINDS 3u     /* original, resend, bypassing resend */
#define VALUES 255u  /* of a slot, and of what an owner holds */
#define PACKETS 64u  /* of one place: bits of a set */
#define GENERATIONS 2u
#define NOW 1u
#define AGE_NS 1000u
#define FLOW 77u
#define ROUNDS_MAX 6u

/* The part of one number that an owner holds. */
struct held {
	uint64_t members[EXPLORE_WORKERS]; /* by group */
	uint32_t words[RULES_WORDS];
	bool is_complete;
};

struct state {
	uint64_t to_top, to_owner; /* sets of packets */
	uint8_t slots[EXPLORE_SLOTS];
	uint8_t held[EXPLORE_NUMBERS];
	uint8_t unused[6];
};

struct found {
	struct state state;
	uint32_t from; /* index of the state before */
	uint32_t depth;
};

/* Values seen, by number: states hold numbers. */
struct values {
	struct rules_slot slots[VALUES];
	struct held held[VALUES];
	struct rules_packet to_top[PACKETS], to_owner[PACKETS];
	uint32_t slot_count, held_count, top_count, owner_count;
};

struct explorer {
	const struct explore_case *c;
	const struct rules *rules;
	struct shape *shape;
	struct tag_keys keys;
	struct step_limits limits;
	struct rules_packet sent[GENERATIONS][EXPLORE_NUMBERS][EXPLORE_WORKERS][KINDS];
	struct values values;
	struct found *found;
	uint64_t found_count, found_max;
	uint32_t *table; /* hash of states: index + 1 */
	uint64_t table_size;
	uint64_t *visible; /* slots and held, hashed, of states whose liveness is known */
	struct explore_result result;
	uint32_t at; /* the state that is expanded */
};

static uint32_t generations(const struct explorer *e)
{
	return e->rules->reuses_numbers ? GENERATIONS : 1;
}

static bool is_two_level(const struct explorer *e)
{
	return e->c->groups > 1;
}

static uint32_t switches(const struct explorer *e)
{
	return is_two_level(e) ? e->c->groups + 1 : 1;
}

/* ---- packets, as the product's sender makes them ---- */

/* A one at the worker's place: the second use of a number has places of its own. */
static uint32_t word_of(const struct explorer *e, uint32_t generation, uint32_t worker)
{
	return generation * e->c->workers + worker;
}

static void make_worker(struct explorer *e, uint32_t generation, uint32_t worker)
{
	static uint32_t words[RULES_WORDS];
	struct window_config all = {.is_fixed = true, .packet_bytes = 1, .ceiling_bytes = 1 << 20};
	struct sender_config config = {.flow = FLOW, .self = (uint16_t)worker, .shape = e->shape, .keys = &e->keys,
	                               .window = EXPLORE_NUMBERS,
	                               .owners = e->c->workers + 1, .congestion = all, .rto_floor_ns = 1, .rto_cap_ns = 1};
	struct sender *sender;
	struct endpoint_out out;
	struct error err;
	uint32_t sequence;

	memset(words, 0, sizeof(words));
	words[word_of(e, generation, worker)] = 1;
	CHECK(sender_open(&config, &sender, &err) == ESP_OK);
	for (uint32_t number = 0; number < e->c->numbers; number++) {
		struct sender_element element = {.words = words, .count = RULES_WORDS, .owner = (uint16_t)e->c->workers,
		                                 .kind = ATP_SIGNED};
		CHECK(sender_offer(sender, &element, &sequence) && sequence == number);
	}
	for (uint64_t kind = 0; kind < KINDS; kind++)
		for (uint32_t number = 0; number < e->c->numbers; number++) {
			struct rules_packet *packet = &e->sent[generation][number][worker][kind];
			CHECK(sender_next(sender, 10 * kind, &out));
			CHECK_U64(out.header.sequence, number);
			CHECK(atp_packet_valid(&out.header));
			CHECK(out.header.flags == (kind == 0 ? 0 : kind == 1 ? ATP_RESEND : ATP_RESEND | ATP_BYPASS));
			packet->packet = out.header;
			memcpy(packet->words, out.words, sizeof(packet->words));
		}
	sender_close(sender);
}

/* ---- values ---- */

static uint32_t intern(void *all, uint32_t *count, uint32_t max, const void *value, size_t bytes)
{
	for (uint32_t i = 0; i < *count; i++)
		if (memcmp((char *)all + i * bytes, value, bytes) == 0)
			return i;
	CHECK_MSG(*count < max, "more than %u values", max);
	memcpy((char *)all + (*count)++ * bytes, value, bytes);
	return *count - 1;
}

/* Number 0 is the empty slot, whatever was in it. */
static uint8_t slot_number(struct explorer *e, const struct rules_slot *slot)
{
	if (!slot->slot.is_used)
		return 0;
	return (uint8_t)intern(e->values.slots, &e->values.slot_count, VALUES, slot, sizeof(*slot));
}

static uint8_t held_number(struct explorer *e, const struct held *held)
{
	return (uint8_t)intern(e->values.held, &e->values.held_count, VALUES, held, sizeof(*held));
}

static uint32_t top_number(struct explorer *e, const struct rules_packet *packet)
{
	struct rules_packet seen = *packet;
	seen.packet.flags &= ATP_RESEND | ATP_BYPASS;
	return intern(e->values.to_top, &e->values.top_count, PACKETS, &seen, sizeof(seen));
}

/* An owner adds all alike. */
static uint32_t owner_number(struct explorer *e, const struct rules_packet *packet)
{
	struct rules_packet seen = *packet;
	seen.packet.flags = 0;
	return intern(e->values.to_owner, &e->values.owner_count, PACKETS, &seen, sizeof(seen));
}

/* ---- is it true? ---- */

__attribute__((format(printf, 3, 4)))
static bool fail(struct explorer *e, enum explore_verdict verdict, const char *format, ...)
{
	va_list args;

	if (e->result.verdict != EXPLORE_SAFE)
		return false;
	e->result.verdict = verdict;
	va_start(args, format);
	vsnprintf(e->result.text, sizeof(e->result.text), format, args);
	va_end(args);
	return false;
}

static bool claims(const struct explorer *e, const struct atp_packet *packet, uint32_t worker)
{
	struct shape_place place = shape_place(e->shape, packet->owner, (uint16_t)worker);
	if (packet->hop == 1)
		return packet->bitmap >> place.group & 1;
	return packet->group == place.group && (packet->bitmap >> place.child & 1);
}

/* Words of one use of the number, a one for each worker in the bitmap; and the tag of it. */
static bool is_honest(struct explorer *e, const struct rules_packet *packet)
{
	bool first = true, second = generations(e) == 2;

	for (uint32_t worker = 0; worker < e->c->workers; worker++) {
		uint32_t expected = claims(e, &packet->packet, worker), other = packet->words[word_of(e, 1, worker)];
		first &= packet->words[word_of(e, 0, worker)] == expected && (generations(e) == 1 || other == 0);
		second &= other == expected && packet->words[word_of(e, 0, worker)] == 0;
	}
	return (first || second) && tag_gradient_right(&e->keys, e->shape, &packet->packet, packet->words);
}

static bool is_right_sum(const struct explorer *e, const uint32_t *words)
{
	uint32_t first = 0, second = 0, all = 0;

	for (uint32_t worker = 0; worker < e->c->workers; worker++) {
		first += words[word_of(e, 0, worker)] == 1;
		second += generations(e) == 2 && words[word_of(e, 1, worker)] == 1;
	}
	for (uint32_t i = 0; i < RULES_WORDS; i++)
		all += words[i];
	return all == e->c->workers && (first == all || second == all);
}

/* ---- moves ---- */

static void held_take(struct explorer *e, struct held *held, const struct rules_packet *packet)
{
	struct element element = {held->members, held->words};

	if (held->is_complete)
		return;
	e->rules->take(&element, e->shape, packet);
	if (!element_is_complete(&element, e->shape, (uint16_t)e->c->workers))
		return;
	if (!is_right_sum(e, held->words))
		fail(e, EXPLORE_WRONG_SUM, "the owner completes with %u %u %u %u ...", held->words[0], held->words[1],
		     held->words[2], held->words[3]);
	*held = (struct held){.is_complete = true};
}

/* A packet through one switch; false: it does not leave. */
static bool pass(struct explorer *e, struct rules_slot *slot, struct rules_packet *packet, uint32_t level)
{
	if (!e->rules->step(&e->limits, slot, packet, packet->packet.hop == level, NOW))
		return false;
	if (!e->rules->reuses_numbers && !is_honest(e, packet))
		return fail(e, EXPLORE_WRONG_SUM, "a packet leaves that is not the sum its bitmap %#" PRIx64 " of hop %u says",
		            packet->packet.bitmap, packet->packet.hop);
	return true;
}

static uint32_t slot_at(const struct explorer *e, uint32_t number, uint32_t level, uint32_t group)
{
	return (level == 1 ? e->c->groups : group) * e->c->slots + number % e->c->slots;
}

static uint64_t hash(const void *bytes, size_t count)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325), word;
	for (size_t i = 0; i + 8 <= count; i += 8) {
		memcpy(&word, (const char *)bytes + i, 8);
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

static void reach(struct explorer *e, const struct state *state)
{
	uint64_t at = hash(state, sizeof(*state)) & (e->table_size - 1);

	for (; e->table[at]; at = (at + 1) & (e->table_size - 1))
		if (memcmp(&e->found[e->table[at] - 1].state, state, sizeof(*state)) == 0)
			return;
	if (e->found_count == e->found_max) {
		fail(e, EXPLORE_TOO_MANY, "more than %" PRIu64 " states", e->found_max);
		return;
	}
	uint32_t depth = e->found_count ? e->found[e->at].depth + 1 : 0;
	e->found[e->found_count++] = (struct found){*state, e->at, depth};
	e->table[at] = (uint32_t)e->found_count;
}

static void deliver(struct explorer *e, const struct rules_packet *packet, uint32_t level, uint32_t group)
{
	struct state next = e->found[e->at].state;
	uint32_t at = slot_at(e, packet->packet.sequence, level, group);
	struct rules_slot slot = e->values.slots[next.slots[at]];
	struct rules_packet out = *packet;

	bool leaves = pass(e, &slot, &out, level);
	next.slots[at] = slot_number(e, &slot);
	if (leaves && level == 0 && is_two_level(e))
		next.to_top |= UINT64_C(1) << top_number(e, &out);
	else if (leaves)
		next.to_owner |= UINT64_C(1) << owner_number(e, &out);
	reach(e, &next);
}

static void deliver_originals(struct explorer *e)
{
	for (uint32_t generation = 0; generation < generations(e); generation++)
		for (uint32_t number = 0; number < e->c->numbers; number++)
			for (uint32_t worker = 0; worker < e->c->workers; worker++)
				for (uint32_t kind = 0; kind < KINDS; kind++) {
					const struct rules_packet *packet = &e->sent[generation][number][worker][kind];
					const struct held *held = &e->values.held[e->found[e->at].state.held[number]];
					/* The second use begins when the first has ended. */
					if (generation == 0 || held->is_complete)
						deliver(e, packet, 0, e->c->group_of[worker]);
				}
}

static void deliver_to_owner(struct explorer *e, uint32_t which)
{
	struct state next = e->found[e->at].state;
	const struct rules_packet packet = e->values.to_owner[which];
	struct held held = e->values.held[next.held[packet.packet.sequence]];

	held_take(e, &held, &packet);
	next.held[packet.packet.sequence] = held_number(e, &held);
	reach(e, &next);
}

static void lose_slots(struct explorer *e)
{
	for (uint32_t i = 0; i < switches(e) * e->c->slots; i++) {
		struct state next = e->found[e->at].state;
		next.slots[i] = 0;
		reach(e, &next);
	}
}

static void use_again(struct explorer *e)
{
	for (uint32_t number = 0; number < e->c->numbers; number++) {
		struct state next = e->found[e->at].state;
		if (!e->values.held[next.held[number]].is_complete)
			continue;
		next.held[number] = 0;
		reach(e, &next);
	}
}

static void expand(struct explorer *e)
{
	const struct state state = e->found[e->at].state;

	deliver_originals(e);
	for (uint32_t i = 0; i < PACKETS; i++) {
		if (state.to_top >> i & 1) {
			struct rules_packet packet = e->values.to_top[i];
			deliver(e, &packet, 1, 0);
		}
		if (state.to_owner >> i & 1)
			deliver_to_owner(e, i);
	}
	lose_slots(e);
	if (e->rules->reuses_numbers)
		use_again(e);
}

/* ---- progress ---- */

struct ending {
	struct rules_slot slots[EXPLORE_SLOTS];
	struct held held[EXPLORE_NUMBERS];
};

/* One worker's resend of one number, which nothing loses, but the switches if they are dead. */
static void resend(struct explorer *e, struct ending *ending, uint32_t worker, uint32_t number, bool bypass,
                   bool are_dead)
{
	struct rules_packet packet = e->sent[0][number][worker][bypass ? 2 : 1];

	if (are_dead && !bypass)
		return;
	for (uint32_t level = 0; level < (is_two_level(e) ? 2u : 1u); level++)
		if (!pass(e, &ending->slots[slot_at(e, number, level, e->c->group_of[worker])], &packet, level))
			return;
	held_take(e, &ending->held[number], &packet);
}

static bool is_over(const struct explorer *e, const struct ending *ending)
{
	for (uint32_t number = 0; number < e->c->numbers; number++)
		if (!ending->held[number].is_complete)
			return false;
	return true;
}

/* Rounds of resends until all is complete: the first through the switches, the others past them. */
static uint32_t rounds_to_end(struct explorer *e, const struct state *state, bool backwards, bool are_dead)
{
	struct ending ending;
	uint32_t rounds = 0;

	for (uint32_t i = 0; i < EXPLORE_SLOTS; i++)
		ending.slots[i] = e->values.slots[state->slots[i]];
	for (uint32_t i = 0; i < EXPLORE_NUMBERS; i++)
		ending.held[i] = e->values.held[state->held[i]];
	for (; !is_over(e, &ending) && rounds < ROUNDS_MAX; rounds++)
		for (uint32_t i = 0; i < e->c->workers; i++)
			for (uint32_t number = 0; number < e->c->numbers; number++)
				resend(e, &ending, backwards ? e->c->workers - 1 - i : i, number, rounds > 0 &&
				       !e->rules->never_bypasses, are_dead);
	return is_over(e, &ending) ? rounds : UINT32_MAX;
}

static void check_progress(struct explorer *e, const struct state *state)
{
	for (uint32_t order = 0; order < 2; order++) {
		uint32_t rounds = rounds_to_end(e, state, order == 1, false), dead = rounds_to_end(e, state, order == 1, true);
		if (rounds == UINT32_MAX || dead == UINT32_MAX) {
			fail(e, EXPLORE_NO_PROGRESS, "resends do not end it%s",
			     rounds == UINT32_MAX ? "" : " where the switches are dead");
			return;
		}
		e->result.ends++;
		e->result.late += rounds > 1;
		if (rounds > e->result.worst_rounds)
			e->result.worst_rounds = rounds;
	}
}

/* The same slots and owner with other packets on their way, which are lost here, end alike: each once. */
static void check_all_progress(struct explorer *e)
{
	uint64_t *seen = calloc(e->table_size, sizeof(*seen));

	CHECK(seen);
	for (uint64_t i = 0; i < e->found_count && e->result.verdict == EXPLORE_SAFE; i++) {
		struct state state = e->found[i].state;
		state.to_top = state.to_owner = 0;
		uint64_t key = hash(&state, sizeof(state)) | 1, at = key & (e->table_size - 1);
		while (seen[at] && seen[at] != key)
			at = (at + 1) & (e->table_size - 1);
		if (seen[at])
			continue;
		seen[at] = key;
		check_progress(e, &state);
	}
	free(seen);
}

/* Another job's packet finds every slot that can be, old. */
static void check_leaks(struct explorer *e)
{
	struct step_limits limits = {.age_ns = e->rules->never_ages ? INT64_MAX : AGE_NS, .words_max = RULES_WORDS};

	for (uint32_t i = 1; i < e->values.slot_count; i++) {
		struct rules_slot slot = e->values.slots[i];
		struct rules_packet packet = e->sent[0][0][0][0];
		packet.packet.flow = FLOW + 1;
		packet.packet.fan_in[0] = 2;
		packet.packet.bitmap = 1;
		e->rules->step(&limits, &slot, &packet, true, NOW + AGE_NS + 1);
		if (!slot.slot.is_used || slot.slot.flow != FLOW + 1) {
			fail(e, EXPLORE_LEAK, "an old slot is not given up");
			return;
		}
	}
}

/* ---- the whole ---- */

static void explorer_init(struct explorer *e, const struct explore_case *c, const struct rules *rules)
{
	static const uint8_t secret[TAG_KEY_BYTES] = "a secret of flow";
	struct error err;

	CHECK(c->workers <= EXPLORE_WORKERS && c->workers * (rules->reuses_numbers ? 2u : 1u) <= RULES_WORDS &&
	      c->numbers <= EXPLORE_NUMBERS);
	memset(e, 0, sizeof(*e));
	e->c = c;
	e->rules = rules;
	e->limits = (struct step_limits){.age_ns = AGE_NS, .words_max = RULES_WORDS};
	CHECK(switches(e) * c->slots <= EXPLORE_SLOTS);
	CHECK(shape_open(c->group_of, c->workers, is_two_level(e) ? 2 : 1, &e->shape, &err) == ESP_OK);
	CHECK(tag_keys_init(&e->keys, secret, RULES_WORDS, &err) == ESP_OK);
	for (uint32_t generation = 0; generation < generations(e); generation++)
		for (uint32_t worker = 0; worker < c->workers; worker++)
			make_worker(e, generation, worker);
	e->values.slot_count = e->values.held_count = 1; /* number 0: nothing */
}

static void explorer_fini(struct explorer *e)
{
	tag_keys_fini(&e->keys);
	shape_close(e->shape);
	free(e->found);
	free(e->table);
}

static void run(struct explorer *e, uint64_t max_states)
{
	struct state start = {0};

	e->found_max = max_states;
	e->found = calloc(max_states, sizeof(*e->found));
	for (e->table_size = 1024; e->table_size < 2 * max_states;)
		e->table_size *= 2;
	e->table = calloc(e->table_size, sizeof(*e->table));
	CHECK(e->found && e->table);
	reach(e, &start);
	for (; e->at < e->found_count && e->result.verdict == EXPLORE_SAFE; e->at++)
		expand(e);
	e->result.states = e->found_count;
	if (e->result.verdict == EXPLORE_WRONG_SUM)
		e->result.steps = e->found[e->at - 1].depth + 1;
}

struct explore_result explore_all(const struct explore_case *c, const struct rules *rules, uint64_t max_states)
{
	static struct explorer e;

	explorer_init(&e, c, rules);
	run(&e, max_states);
	if (e.result.verdict == EXPLORE_SAFE && !rules->knows_no_age)
		check_leaks(&e);
	if (e.result.verdict == EXPLORE_SAFE && !rules->reuses_numbers)
		check_all_progress(&e);
	explorer_fini(&e);
	return e.result;
}

/* ---- closure: sets of values instead of states ---- */

/* One packet at one level with every slot state; slot values of all switches in one set: more than can be, not less. */
static void close_packet(struct explorer *e, const struct rules_packet *packet, uint32_t level)
{
	for (uint32_t i = 0; i < e->values.slot_count && e->result.verdict == EXPLORE_SAFE; i++) {
		struct rules_slot slot = e->values.slots[i];
		struct rules_packet out = *packet;
		bool leaves = pass(e, &slot, &out, level);
		slot_number(e, &slot);
		if (leaves && level == 0 && is_two_level(e))
			top_number(e, &out);
		else if (leaves)
			owner_number(e, &out);
	}
}

static void close_once(struct explorer *e)
{
	for (uint32_t number = 0; number < e->c->numbers; number++)
		for (uint32_t worker = 0; worker < e->c->workers; worker++)
			for (uint32_t kind = 0; kind < KINDS; kind++)
				close_packet(e, &e->sent[0][number][worker][kind], 0);
	for (uint32_t i = 0; i < e->values.top_count; i++) {
		struct rules_packet packet = e->values.to_top[i];
		close_packet(e, &packet, 1);
	}
	for (uint32_t i = 0; i < e->values.owner_count; i++)
		for (uint32_t k = 0; k < e->values.held_count && e->result.verdict == EXPLORE_SAFE; k++) {
			struct held held = e->values.held[k];
			held_take(e, &held, &e->values.to_owner[i]);
			held_number(e, &held);
		}
}

static uint64_t value_count(const struct explorer *e)
{
	return (uint64_t)e->values.slot_count + e->values.held_count + e->values.top_count + e->values.owner_count;
}

struct explore_result explore_closure(const struct explore_case *c, const struct rules *rules)
{
	static struct explorer e;
	uint64_t before;

	explorer_init(&e, c, rules);
	do {
		before = value_count(&e);
		close_once(&e);
	} while (value_count(&e) != before && e.result.verdict == EXPLORE_SAFE);
	e.result.states = before;
	explorer_fini(&e);
	return e.result;
}

/* ---- for people ---- */

const char *explore_verdict_name(enum explore_verdict verdict)
{
	static const char *const names[] = {"safe", "wrong sum", "no progress", "leak", "too many states"};
	return names[verdict];
}

void explore_print(const struct explore_case *c, const struct rules *rules, const struct explore_result *result)
{
	printf("%-52s %-44s %8" PRIu64 " states  %s", c->name, rules->name, result->states,
	       explore_verdict_name(result->verdict));
	if (result->verdict == EXPLORE_WRONG_SUM)
		printf(" after %u steps", result->steps);
	if (result->verdict != EXPLORE_SAFE)
		printf(": %s", result->text);
	else if (result->ends > 0)
		printf("; at most %u rounds of resends, more than 1 from %.1f %%", result->worst_rounds,
		       100.0 * (double)result->late / (double)result->ends);
	printf("\n");
	fflush(stdout);
}
