/*
 * Two members without a switch, whose flow has few numbers: both change to the next generation at the same call; a
 * member that lost a result keeps the other from going on, and gets it from the former generation.
 */
#include "switch/endpoint/succession.h"

#include <string.h>

#include "base/check.h"

#define MEMBERS 2u
#define LIMIT 5u
#define WORDS 3u
#define RTO UINT64_C(20000000)

struct member {
	struct succession stream;
	uint32_t offered, received; /* in all generations */
	uint32_t words[16][WORDS];
};

struct pair {
	struct shape *shape;
	struct member members[MEMBERS];
	uint64_t now;
	bool loses_results; /* that member 0 sends */
};

static void pair_open(struct pair *pair)
{
	const uint16_t group_of[MEMBERS] = {0};
	struct error err;

	*pair = (struct pair){.now = 1};
	CHECK(shape_open(group_of, MEMBERS, 1, &pair->shape, &err) == ESP_OK);
	for (uint16_t i = 0; i < MEMBERS; i++) {
		struct generation_config config = {
			.secret = "a stream's own", .sends = true, .owns = true,
			.sender = {.self = i, .shape = pair->shape, .window = 8, .owners = MEMBERS,
			           .congestion = {.is_fixed = true, .packet_bytes = 100, .ceiling_bytes = 800},
			           .rto_floor_ns = RTO, .rto_cap_ns = RTO},
			.owner = {.self = i, .shape = pair->shape, .window = 8, .words_max = WORDS, .elements = 8},
			.membership = {.self = i, .words_max = WORDS, .busy_ns = RTO, .idle_ns = RTO, .probe_ns = RTO},
		};
		CHECK(succession_open(&pair->members[i].stream, &config, LIMIT, pair->now, &err) == ESP_OK);
	}
}

static void pair_close(struct pair *pair)
{
	for (uint32_t i = 0; i < MEMBERS; i++)
		succession_close(&pair->members[i].stream);
	shape_close(pair->shape);
}

static void deliver(struct pair *pair, const struct endpoint_out *out)
{
	struct member *to = &pair->members[out->member];
	struct generation *at = succession_find(&to->stream, out->header.flow);
	enum generation_event event = at ? succession_packet(&to->stream, at, &out->header, out->words, pair->now) :
	                              GENERATION_NOTHING;

	to->received += event != GENERATION_NOTHING;
	if (event == GENERATION_COMPLETED)
		succession_own_complete(&to->stream, out->header.sequence);
}

/* All packets that are to be sent now, of both, until there are none. */
static void exchange(struct pair *pair)
{
	struct endpoint_out out;
	bool any = true;

	while (any) {
		any = false;
		for (uint32_t i = 0; i < MEMBERS; i++) {
			while (succession_greet(&pair->members[i].stream, pair->now, &out))
				; /* no switch answers */
			while (succession_next(&pair->members[i].stream, pair->now, &out)) {
				any = true;
				if (!(pair->loses_results && i == 0 && out.header.type == ATP_RESULT))
					deliver(pair, &out);
			}
		}
	}
}

static void prepare(struct pair *pair)
{
	struct error err;

	for (uint32_t i = 0; i < MEMBERS; i++)
		CHECK(succession_prepare(&pair->members[i].stream, pair->now, &err) == ESP_OK);
}

/* Elements of the current generation, whose owners are the members in turn. */
static void offer(struct pair *pair, uint32_t which, uint32_t count)
{
	struct member *member = &pair->members[which];
	struct generation *at = member->stream.current;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t *words = member->words[member->offered++], sequence, number = sender_end(at->sender);
		struct sender_element element = {
			.words = words, .call = at->number, .count = WORDS, .owner = (uint16_t)(number % MEMBERS),
			.kind = ATP_SIGNED};
		struct owner_part part = {.words = words, .call = at->number, .count = WORDS, .kind = ATP_SIGNED};
		CHECK(sender_offer(at->sender, &element, &sequence) && sequence == number);
		if (element.owner == which && owner_own(at->owner, number, &part) == OWNER_COMPLETED) {
			member->received++;
			succession_own_complete(&member->stream, number);
		}
	}
}

/* G1 */
static void test_numbers(void)
{
	struct pair pair;

	pair_open(&pair);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		static const struct succession_number expected[] = {{0, 0}, {0, 3}, {1, 0}, {2, 0}, {2, 4}};
		static const uint32_t elements[] = {3, 2, 4, 4, 1};
		struct succession *stream = &pair.members[i].stream;
		for (uint32_t k = 0; k < 5; k++) {
			struct succession_number first = succession_number(stream, elements[k]);
			CHECK(first.generation == expected[k].generation && first.sequence == expected[k].sequence);
			CHECK(succession_is_settled(stream) == (k < 2));
		}
		CHECK_U64(succession_left(stream), 0);
	}
	/* Flow numbers are those of the secret, and differ. */
	const struct generation_config *config = &pair.members[0].stream.config;
	CHECK(generation_flow(config->secret, 0) == pair.members[1].stream.current->flow);
	CHECK(generation_flow(config->secret, 0) != generation_flow(config->secret, 1));
	pair_close(&pair);
}

static void test_change(void)
{
	struct pair pair;

	pair_open(&pair);
	struct member *a = &pair.members[0], *b = &pair.members[1];
	CHECK(!succession_lacks(&a->stream, 0) && succession_lacks(&a->stream, 1));
	for (uint32_t i = 0; i < MEMBERS; i++) {
		(void)succession_number(&pair.members[i].stream, LIMIT);
		(void)succession_number(&pair.members[i].stream, 1);
	}
	prepare(&pair);
	pair.loses_results = true;
	offer(&pair, 0, LIMIT);
	offer(&pair, 1, LIMIT);
	exchange(&pair);
	/* Member 0 owns numbers 0, 2 and 4, and has all; the other one lacks these, and so does not go on (G2). */
	CHECK(a->received == 5 && b->received == 2);
	CHECK(succession_reach(&a->stream, 1) && !succession_reach(&b->stream, 1) && !succession_lacks(&b->stream, 1));
	CHECK(a->stream.former && a->stream.current->number == 1 && succession_owners(&a->stream) == 2);
	/* Contributions of member 0 to the next generation are kept there, and complete nothing. */
	offer(&pair, 0, 2);
	exchange(&pair);
	CHECK(a->received == 5 && b->received == 2 && a->stream.former);
	/* G3: the owner of the former one still answers. */
	pair.loses_results = false;
	pair.now += RTO;
	exchange(&pair);
	CHECK(b->received == 5 && succession_reach(&b->stream, 1));
	CHECK(a->stream.former && b->stream.former);
	uint64_t former = a->stream.former->flow;
	offer(&pair, 1, 2);
	pair.now += RTO;
	exchange(&pair);
	CHECK(a->received == 7 && b->received == 7);
	CHECK(!a->stream.former && !b->stream.former && !succession_find(&a->stream, former));
	CHECK(succession_sent(&a->stream).results == 3 && succession_owned(&a->stream).events[OWNER_COMPLETED] == 4);
	pair_close(&pair);
}

/* With G3 off, a member that lost a result is stranded: the named violation is no progress. */
static void test_without_retention(void)
{
	struct pair pair;

	pair_open(&pair);
	struct member *a = &pair.members[0], *b = &pair.members[1];
	for (uint32_t i = 0; i < MEMBERS; i++)
		(void)succession_number(&pair.members[i].stream, LIMIT);
	prepare(&pair);
	pair.loses_results = true;
	offer(&pair, 0, LIMIT);
	offer(&pair, 1, LIMIT);
	exchange(&pair);
	CHECK(succession_reach(&a->stream, 1));
	generation_close(a->stream.former);
	a->stream.former = NULL;
	pair.loses_results = false;
	for (int i = 0; i < 50; i++, pair.now += RTO)
		exchange(&pair);
	CHECK(b->received == 2 && !succession_reach(&b->stream, 1));
	pair_close(&pair);
}

int main(void)
{
	test_numbers();
	test_change();
	test_without_retention();
	return 0;
}
