/*
 * An owner alone: contributions in any order, answers to members that ask again, retention, and the end of a flow.
 */
#include "switch/endpoint/owner.h"

#include "base/check.h"
#include "base/rng.h"

#define MEMBERS 5u
#define WORDS 4u
#define WINDOW 4u
#define SELF 2u

static const uint8_t secret[TAG_KEY_BYTES] = "a secret of flow";
static const uint16_t group_of[MEMBERS];

struct bench {
	struct shape *shape;
	struct tag_keys keys;
	struct owner *owner;
};

static void bench_init(struct bench *bench, uint16_t self, uint32_t elements)
{
	struct error err;

	CHECK(shape_open(group_of, MEMBERS, 1, &bench->shape, &err) == ESP_OK);
	CHECK(tag_keys_init(&bench->keys, secret, WORDS, &err) == ESP_OK);
	struct owner_config config = {.flow = 9, .self = self, .shape = bench->shape, .keys = &bench->keys,
	                              .window = WINDOW, .words_max = WORDS, .elements = elements};
	CHECK_U64(owner_bytes(&config), elements * (4 * WORDS + 8));
	CHECK(owner_open(&config, &bench->owner, &err) == ESP_OK);
}

static void bench_fini(struct bench *bench)
{
	owner_close(bench->owner);
	tag_keys_fini(&bench->keys);
	shape_close(bench->shape);
}

static void words_of(uint32_t sequence, uint16_t member, uint32_t words[WORDS])
{
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = 100 * sequence + (1u << (4 * member)) - 7 * i;
}

struct gradient {
	struct atp_packet packet;
	uint32_t words[WORDS];
};

static struct gradient gradient(const struct bench *bench, uint16_t self, uint32_t sequence, uint16_t member,
                                uint8_t flags)
{
	struct shape_place place = shape_place(bench->shape, self, member);
	struct gradient g = {
		.packet = {
			.type = ATP_GRADIENT, .flags = flags, .kind = ATP_SIGNED, .fan_in = {place.fan_in[0], 0}, .owner = self,
			.words = WORDS, .sequence = sequence, .call = 5, .flow = 9, .bitmap = UINT64_C(1) << place.child,
		},
	};
	words_of(sequence, member, g.words);
	g.packet.tag = tag_of_gradient(&bench->keys, &g.packet, place.order, g.words);
	return g;
}

static enum owner_event give(struct bench *bench, uint16_t self, uint32_t sequence, uint16_t member, uint8_t flags)
{
	struct gradient g = gradient(bench, self, sequence, member, flags);
	return owner_packet(bench->owner, &g.packet, g.words);
}

static void check_result(const struct bench *bench, const struct endpoint_out *out, uint32_t sequence)
{
	uint32_t one[WORDS];

	CHECK(out->header.type == ATP_RESULT && out->header.sequence == sequence && atp_packet_valid(&out->header));
	CHECK(out->header.tag == tag_of_result(&bench->keys, &out->header, out->words));
	for (uint32_t i = 0; i < WORDS; i++) {
		uint32_t sum = 0;
		for (uint16_t member = 0; member < MEMBERS; member++) {
			words_of(sequence, member, one);
			sum += one[i];
		}
		CHECK_U64(((const uint32_t *)out->words)[i], sum);
		CHECK_U64(owner_sum(bench->owner, sequence)[i], sum);
	}
}

static struct owner_part part_of(const uint32_t *words)
{
	return (struct owner_part){.words = words, .call = 5, .count = WORDS, .kind = ATP_SIGNED};
}

/* All members but the owner, then its own part, or that first. */
static void complete(struct bench *bench, uint32_t sequence, bool own_first)
{
	uint32_t own[WORDS];
	words_of(sequence, SELF, own);
	struct owner_part part = part_of(own);

	if (own_first)
		CHECK_U64(owner_own(bench->owner, sequence, &part), OWNER_ADDED);
	for (uint16_t member = 0; member < MEMBERS; member++)
		if (member != SELF)
			CHECK_U64(give(bench, SELF, sequence, member, 0),
			          own_first && member == MEMBERS - 1 ? OWNER_COMPLETED : OWNER_ADDED);
	if (!own_first)
		CHECK_U64(owner_own(bench->owner, sequence, &part), OWNER_COMPLETED);
}

static void test_complete(void)
{
	struct bench bench;
	struct endpoint_out out;

	bench_init(&bench, SELF, 2 * WINDOW);
	for (uint32_t sequence = 0; sequence < 20; sequence++) {
		complete(&bench, sequence, sequence % 2);
		CHECK(owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_SWITCH);
		check_result(&bench, &out, sequence);
		CHECK(!owner_next(bench.owner, &out));
		/* O5: results up to a window back are kept, and no more. */
		CHECK_U64(owner_elements_held(bench.owner), sequence + 1 < WINDOW ? sequence + 1 : WINDOW);
	}
	CHECK_U64(give(&bench, SELF, 15, 1, ATP_RESEND), OWNER_FORGOTTEN);
	CHECK_U64(give(&bench, SELF, 16, 1, ATP_RESEND), OWNER_ANSWERED);
	CHECK(owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_MEMBER && out.member == 1 &&
	      (out.header.flags & ATP_BYPASS));
	check_result(&bench, &out, 16);
	CHECK_U64(give(&bench, SELF, 17, 3, 0), OWNER_COMPLETE);
	CHECK(!owner_next(bench.owner, &out));
	/* Two that ask at once get one answer through the switch. */
	CHECK_U64(give(&bench, SELF, 17, 3, ATP_RESEND), OWNER_ANSWERED);
	CHECK_U64(give(&bench, SELF, 17, 4, ATP_RESEND), OWNER_ANSWERED);
	CHECK(owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_SWITCH && !owner_next(bench.owner, &out));
	/* If one of them came past the switch, the answer does so, too: the switch may not reach that member. */
	for (int order = 0; order < 2; order++) {
		CHECK_U64(give(&bench, SELF, 17, 3, order ? ATP_RESEND : ATP_RESEND | ATP_BYPASS), OWNER_ANSWERED);
		CHECK_U64(give(&bench, SELF, 17, 4, order ? ATP_RESEND | ATP_BYPASS : ATP_RESEND), OWNER_ANSWERED);
		if (order) /* an answer through the switch, and one straight: both ways */
			CHECK(owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_SWITCH);
		for (uint16_t member = 0; member < MEMBERS; member++)
			CHECK(member == SELF ||
			      (owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_MEMBER && out.member == member));
		CHECK(!owner_next(bench.owner, &out));
	}
	bench_fini(&bench);
}

/* O4: a contribution came past the switch, so the result goes through it, which frees its slot, and to each. */
static void test_bypassed(void)
{
	struct bench bench;
	struct endpoint_out out;

	bench_init(&bench, MEMBERS, 2 * WINDOW); /* a server */
	for (uint16_t member = 0; member < MEMBERS; member++)
		CHECK_U64(give(&bench, MEMBERS, 2, member, member < MEMBERS - 1 ? 0 : ATP_RESEND | ATP_BYPASS),
		          member < MEMBERS - 1 ? OWNER_ADDED : OWNER_COMPLETED);
	CHECK(owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_SWITCH);
	check_result(&bench, &out, 2);
	for (uint16_t member = 0; member < MEMBERS; member++)
		CHECK(owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_MEMBER && out.member == member);
	CHECK(!owner_next(bench.owner, &out));
	bench_fini(&bench);
}

static void test_partial(void)
{
	struct bench bench;
	struct endpoint_out out;
	struct gradient sum, other;

	bench_init(&bench, MEMBERS, 2 * WINDOW); /* a server */
	CHECK_U64(give(&bench, MEMBERS, 3, 4, ATP_RESEND), OWNER_ADDED);
	CHECK_U64(give(&bench, MEMBERS, 3, 4, ATP_RESEND), OWNER_OVERLAPS);
	/* A partial sum of members 0 to 3, with the mark of one: disjoint. */
	sum = gradient(&bench, MEMBERS, 3, 0, ATP_MARK);
	for (uint16_t member = 1; member < 4; member++) {
		other = gradient(&bench, MEMBERS, 3, member, 0);
		sum.packet.bitmap |= other.packet.bitmap;
		sum.packet.tag += other.packet.tag;
		for (uint32_t i = 0; i < WORDS; i++)
			sum.words[i] += other.words[i];
	}
	struct gradient wrong = sum;
	wrong.packet.bitmap = 7;
	CHECK_U64(owner_packet(bench.owner, &wrong.packet, wrong.words), OWNER_REFUSED);
	wrong = sum, wrong.words[1]++;
	CHECK_U64(owner_packet(bench.owner, &wrong.packet, wrong.words), OWNER_REFUSED);
	wrong = gradient(&bench, MEMBERS, 3, 1, 0), wrong.packet.call = 6;
	wrong.packet.tag = tag_of_gradient(&bench.keys, &wrong.packet, 1, wrong.words);
	CHECK_U64(owner_packet(bench.owner, &wrong.packet, wrong.words), OWNER_REFUSED);
	CHECK_U64(owner_packet(bench.owner, &sum.packet, sum.words), OWNER_COMPLETED);
	/* Without a switch: one after the other, each member once. */
	owner_use_switch(bench.owner, false);
	for (uint16_t member = 0; member < MEMBERS; member++) {
		CHECK(owner_next(bench.owner, &out) && out.to == ENDPOINT_TO_MEMBER && out.member == member &&
		      (out.header.flags & ATP_MARK));
		check_result(&bench, &out, 3);
	}
	CHECK(!owner_next(bench.owner, &out));
	bench_fini(&bench);
}

/*
 * O6: a member that waits makes the owner ask those that are missing: once, and again when all that wait have sent
 * again.
 */
static void test_ask(void)
{
	struct bench bench;
	struct endpoint_out out;

	bench_init(&bench, SELF, 2 * WINDOW);
	CHECK_U64(give(&bench, SELF, 0, 1, 0), OWNER_ADDED);
	CHECK_U64(give(&bench, SELF, 0, 3, ATP_RESEND), OWNER_ADDED);
	CHECK(!owner_next(bench.owner, &out));
	for (int round = 0; round < 2; round++) {
		CHECK_U64(give(&bench, SELF, 0, 1, ATP_RESEND | ATP_BYPASS), OWNER_OVERLAPS);
		for (uint16_t member = 0; member < MEMBERS; member += 4) {
			CHECK(owner_next(bench.owner, &out) && out.header.type == ATP_ASK && out.header.sequence == 0 &&
			      out.to == ENDPOINT_TO_MEMBER);
			CHECK(out.member == member && atp_packet_valid(&out.header) &&
			      out.header.tag == tag_of_ask(&bench.keys, &out.header));
		}
		CHECK(!owner_next(bench.owner, &out));
		CHECK_U64(give(&bench, SELF, 0, 3, ATP_RESEND | ATP_BYPASS), OWNER_OVERLAPS);
		CHECK(!owner_next(bench.owner, &out));
	}
	CHECK_U64(owner_counters(bench.owner)->asked, 4);
	bench_fini(&bench);
}

/* A member with other contents was first; the own part decides. */
static void test_overruled(void)
{
	struct bench bench;
	uint32_t own[WORDS];

	bench_init(&bench, SELF, 2 * WINDOW);
	words_of(0, SELF, own);
	struct owner_part part = part_of(own);
	part.call = 8;
	CHECK_U64(give(&bench, SELF, 0, 1, 0), OWNER_ADDED);
	CHECK_U64(owner_own(bench.owner, 0, &part), OWNER_ADDED);
	CHECK_U64(owner_counters(bench.owner)->overruled, 1);
	CHECK_U64(give(&bench, SELF, 0, 1, 0), OWNER_REFUSED);
	CHECK_U64(give(&bench, SELF, 0, 3, 0), OWNER_REFUSED);
	bench_fini(&bench);
}

static void test_full(void)
{
	struct bench bench;
	uint32_t own[WORDS];
	struct owner_part part = part_of(own);

	bench_init(&bench, SELF, 2);
	CHECK_U64(give(&bench, SELF, 0, 1, 0), OWNER_ADDED);
	CHECK_U64(give(&bench, SELF, 1, 1, 0), OWNER_ADDED);
	CHECK_U64(give(&bench, SELF, 2, 1, 0), OWNER_FULL);
	CHECK_U64(owner_own(bench.owner, 2, &part), OWNER_FULL);
	/* A number two windows ahead would need the place of an open one. */
	CHECK_U64(give(&bench, SELF, 2 * WINDOW, 1, 0), OWNER_FULL);
	bench_fini(&bench);
}

static void test_end(void)
{
	struct bench bench;
	struct endpoint_out out;
	uint32_t lingering = 0;

	bench_init(&bench, SELF, 2 * WINDOW);
	CHECK(owner_is_quiet(bench.owner));
	for (uint32_t sequence = 0; sequence < 3; sequence++)
		complete(&bench, sequence, true);
	while (owner_next(bench.owner, &out))
		;
	struct atp_packet bye = {.type = ATP_BYE, .flags = ATP_DONE, .sequence = 3, .flow = 9};
	owner_bye(bench.owner, &bye); /* without a tag: nothing */
	for (uint16_t member = 0; member < MEMBERS; member++) {
		CHECK(!owner_is_quiet(bench.owner) && owner_elements_held(bench.owner) == 3);
		owner_linger(bench.owner);
		for (lingering = 0; owner_next(bench.owner, &out); lingering++)
			CHECK_U64(out.header.sequence, 2);
		/* In turn straight, to the one that has not said bye or to each member, and through the switch. */
		CHECK_U64(lingering, member % 2 || member == MEMBERS - 1 ? 1 : MEMBERS - 1);
		bye.owner = member;
		bye.tag = tag_of_bye(&bench.keys, &bye);
		if (member != SELF)
			owner_bye(bench.owner, &bye);
	}
	CHECK(owner_is_quiet(bench.owner) && owner_elements_held(bench.owner) == 0);
	bench_fini(&bench);
}

int main(void)
{
	test_complete();
	test_bypassed();
	test_partial();
	test_ask();
	test_overruled();
	test_full();
	test_end();
	return 0;
}
