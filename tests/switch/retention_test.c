/*
 * How long an owner keeps results: the product's senders and owners in every order of arrivals, each state reached by a
 * replay.
 *
 * A member may be behind all others by as much as the window lets it; whatever it lacks, its owner must still answer. A
 * state is which contributions have come, and which member has which result.
 */
#include "base/check.h"
#include "switch/endpoint/owner.h"
#include "switch/endpoint/sender.h"

#define MEMBERS_MAX 3u
#define NUMBERS_MAX 10u
#define WORDS 2u
#define FLOW 5u
#define STATES_MAX 200000u

struct plan {
	const char *name;
	uint32_t members, window, numbers;
	bool own;             /* members own the numbers in turn; else one server owns all */
	uint32_t owner_window, elements; /* configuration of the owners */
};

struct state {
	uint16_t acked[MEMBERS_MAX]; /* by member: results it has */
	uint16_t held[MEMBERS_MAX];  /* by member: its contributions that have come */
};

/* A move, and where it was made from: its replay. */
struct found {
	struct state state;
	uint32_t from;
	uint8_t member, number;
	bool is_result;
};

struct world {
	const struct plan *plan;
	struct shape *shape;
	struct tag_keys keys;
	struct sender *senders[MEMBERS_MAX];
	struct owner *owners[MEMBERS_MAX]; /* a server: the first */
	struct atp_packet sent[MEMBERS_MAX][NUMBERS_MAX];
	bool was_sent[MEMBERS_MAX][NUMBERS_MAX];
	uint32_t offered[MEMBERS_MAX];
	uint32_t words[MEMBERS_MAX][WORDS];
	struct state state;
	uint32_t most_elements;
	const char *broken; /* NULL: all is well */
};

static struct found all[STATES_MAX];
static uint32_t count;

static uint16_t owner_of(const struct plan *plan, uint32_t number)
{
	return (uint16_t)(plan->own ? number % plan->members : plan->members);
}

static struct owner *owner_object(const struct world *world, uint32_t number)
{
	return world->owners[world->plan->own ? number % world->plan->members : 0];
}

/* ---- a world ---- */

static void open_member(struct world *world, uint16_t member)
{
	struct error err;
	struct sender_config config = {
		.flow = FLOW, .self = member, .shape = world->shape, .keys = &world->keys, .window = world->plan->window,
		.owners = world->plan->members + 1, .congestion = {.is_fixed = true, .packet_bytes = 1,
		                                                   .ceiling_bytes = 1 << 20},
		.rto_floor_ns = 1, .rto_cap_ns = 1,
	};
	CHECK(sender_open(&config, &world->senders[member], &err) == ESP_OK);
	for (uint32_t i = 0; i < WORDS; i++)
		world->words[member][i] = 1u << (8 * member);
}

static void open_world(struct world *world, const struct plan *plan)
{
	static const uint8_t secret[TAG_KEY_BYTES] = "a secret of flow";
	static const uint16_t group_of[MEMBERS_MAX];
	struct error err;

	*world = (struct world){.plan = plan};
	CHECK(shape_open(group_of, plan->members, 1, &world->shape, &err) == ESP_OK);
	CHECK(tag_keys_init(&world->keys, secret, WORDS, &err) == ESP_OK);
	for (uint16_t member = 0; member < plan->members; member++)
		open_member(world, member);
	for (uint16_t i = 0; i < (plan->own ? plan->members : 1); i++) {
		struct owner_config config = {.flow = FLOW, .self = owner_of(plan, i), .shape = world->shape,
		                              .keys = &world->keys,
		                              .window = plan->owner_window, .words_max = WORDS, .elements = plan->elements};
		CHECK(owner_open(&config, &world->owners[i], &err) == ESP_OK);
	}
}

static void close_world(struct world *world)
{
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		sender_close(world->senders[i]);
		owner_close(world->owners[i]);
	}
	tag_keys_fini(&world->keys);
	shape_close(world->shape);
}

/* ---- what members do at once ---- */

static bool is_complete(const struct world *world, uint32_t number)
{
	for (uint32_t member = 0; member < world->plan->members; member++)
		if (!(world->state.held[member] >> number & 1))
			return false;
	return true;
}

static void contributed(struct world *world, uint32_t member, uint32_t number, enum owner_event event)
{
	world->state.held[member] |= (uint16_t)(1u << number);
	if (event == OWNER_FULL)
		world->broken = "no element is free";
	else if (event == OWNER_FORGOTTEN)
		world->broken = "a contribution comes after its number was forgotten";
	else if ((event == OWNER_COMPLETED) != is_complete(world, number) ||
	         (event != OWNER_ADDED && event != OWNER_COMPLETED))
		world->broken = owner_event_name(event);
	if (event == OWNER_COMPLETED && world->plan->own) {
		world->state.acked[owner_of(world->plan, number)] |= (uint16_t)(1u << number);
		sender_own_complete(world->senders[owner_of(world->plan, number)], number);
	}
	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		if (world->owners[i] && owner_elements_held(world->owners[i]) > world->most_elements)
			world->most_elements = owner_elements_held(world->owners[i]);
}

static void offer_all(struct world *world, uint16_t member)
{
	while (world->offered[member] < world->plan->numbers) {
		uint32_t number = world->offered[member], sequence;
		struct sender_element element = {.words = world->words[member], .count = WORDS,
		                                 .owner = owner_of(world->plan, number), .kind = ATP_SIGNED};
		if (!sender_offer(world->senders[member], &element, &sequence))
			return;
		CHECK_U64(sequence, number);
		world->offered[member]++;
		struct owner_part part = {.words = world->words[member], .count = WORDS, .kind = ATP_SIGNED};
		if (element.owner == member)
			contributed(world, member, number, owner_own(world->owners[member], number, &part));
	}
}

/* Originals go on their way; results that no member asked for are lost. */
static void settle(struct world *world)
{
	struct endpoint_out out;

	for (uint32_t round = 0; round < 2; round++)
		for (uint16_t member = 0; member < world->plan->members; member++) {
			offer_all(world, member);
			while (sender_next(world->senders[member], 0, &out)) {
				world->sent[member][out.header.sequence] = out.header;
				world->was_sent[member][out.header.sequence] = true;
			}
		}
	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		while (world->owners[i] && owner_next(world->owners[i], &out))
			;
}

/* ---- moves ---- */

static void arrive(struct world *world, uint32_t member, uint32_t number)
{
	const struct atp_packet *packet = &world->sent[member][number];
	contributed(world, member, number, owner_packet(owner_object(world, number), packet, world->words[member]));
}

/* The member asks again, and this time gets the result. */
static void ask(struct world *world, uint32_t member, uint32_t number)
{
	struct atp_packet packet = world->sent[member][number];
	struct owner *owner = owner_object(world, number);
	struct endpoint_out out;

	packet.flags = ATP_RESEND | ATP_BYPASS;
	if (owner_packet(owner, &packet, world->words[member]) != OWNER_ANSWERED) {
		world->broken = "a member lacks what its owner has forgotten";
		return;
	}
	CHECK(owner_next(owner, &out) && out.header.sequence == number && out.to == ENDPOINT_TO_MEMBER &&
	      out.member == member);
	for (uint32_t i = 0; i < WORDS; i++)
		CHECK_U64(((const uint32_t *)out.words)[i], world->plan->members == 3 ? 0x10101 : 0x101);
	CHECK(sender_result(world->senders[member], &out.header, out.words, 0) == SENDER_NEW);
	world->state.acked[member] |= (uint16_t)(1u << number);
}

static bool may_move(const struct world *world, const struct found *move)
{
	uint32_t bit = 1u << move->number;
	bool is_owners = owner_of(world->plan, move->number) == move->member;

	if (move->is_result)
		return is_complete(world, move->number) && !(world->state.acked[move->member] & bit);
	return !is_owners && world->was_sent[move->member][move->number] && !(world->state.held[move->member] & bit);
}

static void make_move(struct world *world, const struct found *move)
{
	if (move->is_result)
		ask(world, move->member, move->number);
	else
		arrive(world, move->member, move->number);
	settle(world);
}

static void replay(struct world *world, uint32_t at)
{
	uint32_t path[2 * MEMBERS_MAX * NUMBERS_MAX], length = 0;

	settle(world);
	for (; at != 0; at = all[at].from)
		path[length++] = at;
	while (length > 0)
		make_move(world, &all[path[--length]]);
}

static void add(const struct state *state, const struct found *move)
{
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(&all[i].state, state, sizeof(*state)) == 0)
			return;
	CHECK(count < STATES_MAX);
	all[count] = *move;
	all[count++].state = *state;
}

/* NULL: no state is broken. Stops at the first that is. */
static const char *explore(const struct plan *plan, uint32_t *out_elements)
{
	struct world world;
	const char *broken = NULL;

	open_world(&world, plan);
	settle(&world);
	all[0] = (struct found){.state = world.state};
	count = 1;
	close_world(&world);
	*out_elements = 0;
	for (uint32_t at = 0; at < count && !broken; at++)
		for (uint32_t which = 0; which < 2 * plan->members * plan->numbers && !broken; which++) {
			struct found move = {.from = at, .member = (uint8_t)(which / 2 % plan->members),
			                     .number = (uint8_t)(which / 2 / plan->members), .is_result = which % 2};
			open_world(&world, plan);
			replay(&world, at);
			if (may_move(&world, &move)) {
				make_move(&world, &move);
				add(&world.state, &move);
			}
			broken = world.broken;
			*out_elements = world.most_elements > *out_elements ? world.most_elements : *out_elements;
			close_world(&world);
		}
	printf("%-34s %u members, window %u, %u numbers: %6u states; %u elements at most%s%s\n", plan->name, plan->members,
	       plan->window, plan->numbers,
	       count, *out_elements, broken ? "; " : "", broken ? broken : "");
	fflush(stdout);
	return broken;
}

static void check_plan(const struct plan *plan, uint32_t states, const char *expected)
{
	uint32_t elements;
	const char *broken = explore(plan, &elements);

	if (expected) {
		CHECK_STR(broken, expected);
		return;
	}
	CHECK_MSG(!broken, "%s", broken);
	if (states)
		CHECK_U64(count, states);
	if (!plan->own)
		CHECK_U64(elements, 2 * plan->window);
}

int main(void)
{
	static const struct plan server[] = {
		{"a server", 2, 1, 4, false, 1, 2},
		{"a server", 2, 2, 6, false, 2, 4},
		{"a server", 3, 1, 4, false, 1, 2},
		{"a server", 3, 2, 5, false, 2, 4},
	};
	static const uint32_t states[] = {31, 297, 93, 1683};
	/* With two windows of elements shared by the owners. */
	static const struct plan own[] = {
		{"members own in turn", 2, 2, 6, true, 2, 2},
		{"members own in turn", 3, 2, 6, true, 2, 2},
		{"members own in turn", 2, 4, 8, true, 4, 4},
	};

	for (uint32_t i = 0; i < 4; i++)
		check_plan(&server[i], states[i], NULL);
	for (uint32_t i = 0; i < 3; i++)
		check_plan(&own[i], 0, NULL);
	/* O5 with less: forgotten too early; too few elements. */
	check_plan(&(struct plan){"owner keeps half a window", 2, 2, 6, false, 1, 2}, 0,
	           "a contribution comes after its number was forgotten");
	check_plan(&(struct plan){"an element too few", 2, 2, 6, false, 2, 3}, 0, "no element is free");
	return 0;
}
