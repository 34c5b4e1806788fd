#include "wire/verdict_msg.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

#define SIZE_MOST 70u

struct maps {
	uint8_t bytes[4][(SIZE_MOST + 7) / 8];
};

static struct verdict_terms draw_terms(struct rng *rng)
{
	return (struct verdict_terms){
		.ballot = rng_next(rng),
		.everywhere = rng_next(rng),
		.somewhere = rng_next(rng),
		.channel = (uint32_t)rng_next(rng),
		.flags = (uint8_t)rng_below(rng, VERDICT_FLAGS + 1),
	};
}

static struct verdict_msg draw(struct rng *rng, struct maps *maps)
{
	struct verdict_msg msg = {
		.type = (uint8_t)(1 + rng_below(rng, VERDICT_LEFT)),
		.size = 1 + (uint32_t)rng_below(rng, SIZE_MOST),
		.terms = draw_terms(rng),
		.accepted = draw_terms(rng),
		.gone = maps->bytes[0],
		.accused = maps->bytes[1],
		.behind = maps->bytes[1],
		.members = maps->bytes[2],
		.left = maps->bytes[3],
	};

	memset(maps, 0, sizeof(*maps));
	for (unsigned i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < msg.size; k++) {
			if (rng_chance(rng, 1, 3))
				verdict_set_bit(maps->bytes[i], k);
		}
	}
	return msg;
}

static bool same_terms(const struct verdict_terms *a, const struct verdict_terms *b)
{
	return a->ballot == b->ballot && a->everywhere == b->everywhere && a->somewhere == b->somewhere &&
	       a->channel == b->channel && a->flags == b->flags;
}

static bool same_map(const uint8_t *a, const uint8_t *b, uint32_t size)
{
	return !b || memcmp(a, b, verdict_map_bytes(size)) == 0;
}

/*
 * Every field is decoded as it was encoded, every other length is refused, and every changed byte is noticed or
 * matters.
 */
static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 3000; i++) {
		struct maps maps;
		struct verdict_msg msg = draw(rng, &maps), back = {0};
		uint8_t *bytes = malloc(verdict_msg_most(msg.size)), again[VERDICT_HEAD_BYTES + 4 * sizeof(maps.bytes[0])];

		CHECK(bytes != NULL);
		size_t n = verdict_msg_encode(&msg, bytes);
		CHECK(verdict_msg_decode(bytes, n, msg.size, &back));
		CHECK(back.type == msg.type && same_terms(&back.terms, &msg.terms) &&
		      same_terms(&back.accepted, &msg.accepted));
		CHECK(same_map(msg.gone, back.gone, msg.size) && same_map(msg.accused, back.accused, msg.size));
		CHECK(same_map(msg.behind, back.behind, msg.size) && same_map(msg.members, back.members, msg.size));
		CHECK(same_map(msg.left, back.left, msg.size));
		CHECK((back.behind != NULL) == (msg.type == VERDICT_DECIDED));
		CHECK((back.left != NULL) == (msg.type == VERDICT_DECIDED || msg.type == VERDICT_JOIN));
		CHECK((back.gone != NULL) == (msg.type == VERDICT_JOIN));
		CHECK(verdict_msg_encode(&back, again) == n && memcmp(bytes, again, n) == 0);
		CHECK(!verdict_msg_decode(bytes, n - 1, msg.size, &back));
		uint32_t asked_size = msg.size;
		bool asks = msg.type == VERDICT_CALL || msg.type == VERDICT_JOIN || msg.type == VERDICT_PROPOSE;
		CHECK(verdict_msg_asks(bytes, n, &asked_size) == asks && asked_size == msg.size);
		CHECK(!verdict_msg_asks(bytes, VERDICT_HEAD_BYTES - 1, &asked_size));
		CHECK(!verdict_msg_decode(bytes, n, msg.size + 1, &back));
		for (size_t cut = 0; cut < n; cut++)
			CHECK(!verdict_msg_decode(bytes, cut, msg.size, &back));
		bytes[rng_below(rng, n)] ^= (uint8_t)(1u << rng_below(rng, 8));
		if (verdict_msg_decode(bytes, n, msg.size, &back))
			CHECK(verdict_msg_encode(&back, again) == n && memcmp(bytes, again, n) == 0);
		free(bytes);
	}
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 11);
	round_trip(&rng);
	return 0;
}
