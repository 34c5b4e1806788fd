/*
 * Tags of sums are sums of tags for any set of contributors; everything else that a packet says is bound.
 */
#include "switch/endpoint/tag.h"

#include "base/check.h"
#include "base/rng.h"

#define WORDS 20u
#define MEMBERS 24u

static const uint8_t secret[TAG_KEY_BYTES] = "a secret of flow";

/* The first values of the authors' table: key 00..0f, input 00, 01, ... */
static void test_siphash(void)
{
	static const uint64_t expected[] = {
		UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd), UINT64_C(0x0d6c8009d9a94f5a),
		UINT64_C(0x85676696d7fb7e2d), UINT64_C(0xcf2794e0277187b7), UINT64_C(0x18765564cd99a68d),
		UINT64_C(0xcbc9466e58fee3ce), UINT64_C(0xab0200f58b01d137), UINT64_C(0x93f5f5799a932462),
	};
	const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
	uint8_t input[16];

	for (uint8_t i = 0; i < 16; i++)
		input[i] = i;
	for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		CHECK_U64(tag_siphash(key, input, i), expected[i]);
}

struct sum {
	struct atp_packet packet;
	uint32_t words[WORDS];
};

static struct atp_packet header(struct rng *rng, uint8_t kind)
{
	return (struct atp_packet){
		.type = ATP_GRADIENT, .kind = kind, .scale = (uint8_t)rng_next(rng), .words = WORDS,
		.sequence = (uint32_t)rng_next(rng),
		.call = (uint32_t)rng_next(rng), .flow = rng_next(rng), .owner = (uint16_t)rng_below(rng, MEMBERS + 2),
	};
}

/* So many contributors that no sum leaves its word. */
static void contribute(const struct tag_keys *keys, const struct shape *shape, struct sum *sum, uint16_t member,
                       struct rng *rng)
{
	struct shape_place place = shape_place(shape, sum->packet.owner, member);
	bool is_signed = sum->packet.kind == ATP_FIXED_32 || sum->packet.kind == ATP_SIGNED;
	uint32_t words[WORDS];

	for (uint32_t i = 0; i < WORDS; i++) {
		words[i] = (uint32_t)rng_below(rng, UINT32_MAX / MEMBERS);
		words[i] -= is_signed ? UINT32_MAX / MEMBERS / 2 : 0;
		sum->words[i] += words[i];
	}
	sum->packet.tag += tag_of_gradient(keys, &sum->packet, place.order, words);
}

/* Some contributors of one group, at hop 0. */
static bool draw_children(const struct tag_keys *keys, const struct shape *shape, struct sum *sum, struct rng *rng)
{
	sum->packet.group = (uint16_t)rng_below(rng, shape_groups(shape));
	struct shape_group group = shape_group(shape, sum->packet.owner, sum->packet.group);
	uint16_t member;

	for (uint8_t child = 0; child < group.fan_in; child++)
		if (rng_chance(rng, 2, 3)) {
			CHECK(shape_member(shape, sum->packet.owner, sum->packet.group, child, &member));
			contribute(keys, shape, sum, member, rng);
			sum->packet.bitmap |= UINT64_C(1) << child;
		}
	return sum->packet.bitmap != 0;
}

/* Some whole groups, at hop 1. */
static bool draw_groups(const struct tag_keys *keys, const struct shape *shape, struct sum *sum, struct rng *rng)
{
	sum->packet.hop = 1;
	for (uint16_t number = 0; number < shape_groups(shape); number++) {
		struct shape_group group = shape_group(shape, sum->packet.owner, number);
		uint16_t member;
		if (group.fan_in == 0 || rng_chance(rng, 1, 3))
			continue;
		sum->packet.bitmap |= UINT64_C(1) << number;
		for (uint8_t child = 0; child < group.fan_in; child++) {
			CHECK(shape_member(shape, sum->packet.owner, number, child, &member));
			contribute(keys, shape, sum, member, rng);
		}
	}
	return sum->packet.bitmap != 0;
}

#define BOUND(change)                                                                     \
	do {                                                                              \
		struct sum other = *sum;                                                  \
		change;                                                                   \
		CHECK_MSG(!tag_gradient_right(keys, shape, &other.packet, other.words), "%s", #change); \
	} while (0)

static void check_bound(const struct tag_keys *keys, const struct shape *shape, const struct sum *sum, struct rng *rng)
{
	uint32_t at = (uint32_t)rng_below(rng, WORDS);

	CHECK(tag_gradient_right(keys, shape, &sum->packet, sum->words));
	BOUND(other.words[at] ^= 1u << rng_below(rng, 32));
	BOUND(other.words[at] += 1);
	BOUND(other.packet.call ^= 1);
	BOUND(other.packet.scale ^= 128);
	BOUND(other.packet.sequence ^= 1u << rng_below(rng, 32));
	BOUND(other.packet.flow ^= UINT64_C(1) << rng_below(rng, 64));
	BOUND(other.packet.words--);
	BOUND(other.packet.tag ^= UINT64_C(1) << rng_below(rng, 64));
	BOUND(other.packet.kind = other.packet.kind == ATP_SIGNED ? ATP_UNSIGNED : ATP_SIGNED);
	if (sum->packet.bitmap & (sum->packet.bitmap - 1))
		BOUND(other.packet.bitmap &= other.packet.bitmap - 1);
}

static void test_sums(const struct tag_keys *keys, const struct shape *shape, struct rng *rng)
{
	for (int round = 0; round < 3000; round++) {
		struct sum sum = {.packet = header(rng, (uint8_t)(1 + rng_below(rng, 4)))};
		if (round % 2 ? draw_children(keys, shape, &sum, rng) : draw_groups(keys, shape, &sum, rng))
			check_bound(keys, shape, &sum, rng);
	}
}

/* Results and byes have other keys and pads than contributions, and bind what they say. */
static void test_results(const struct tag_keys *keys, const struct shape *shape, struct rng *rng)
{
	struct sum sum = {.packet = header(rng, ATP_SIGNED)};
	uint64_t tag = tag_of_result(keys, &sum.packet, sum.words), bye = tag_of_bye(keys, &sum.packet);

	sum.packet.bitmap = 1;
	sum.packet.tag = tag;
	CHECK(!tag_gradient_right(keys, shape, &sum.packet, sum.words) && bye != tag &&
	      tag_of_ask(keys, &sum.packet) != bye);
	sum.words[3] ^= 1u << 31;
	CHECK(tag_of_result(keys, &sum.packet, sum.words) != tag);
	sum.words[3] ^= 1u << 31;
	CHECK(tag_of_result(keys, &sum.packet, sum.words) == tag);
	sum.packet.sequence++;
	CHECK(tag_of_result(keys, &sum.packet, sum.words) != tag && tag_of_bye(keys, &sum.packet) != bye);
}

int main(int argc, char **argv)
{
	uint16_t group_of[MEMBERS];
	struct tag_keys keys = {0};
	struct shape *shape;
	struct error err;
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_siphash();
	for (uint32_t i = 0; i < MEMBERS; i++)
		group_of[i] = (uint16_t)(i * i % 7);
	CHECK(shape_open(group_of, MEMBERS, 2, &shape, &err) == ESP_OK);
	CHECK(tag_keys_init(&keys, secret, WORDS, &err) == ESP_OK);
	test_sums(&keys, shape, &rng);
	test_results(&keys, shape, &rng);
	tag_keys_fini(&keys);
	tag_keys_fini(&keys);
	shape_close(shape);
	return 0;
}
