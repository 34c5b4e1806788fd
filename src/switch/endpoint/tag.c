#include "switch/endpoint/tag.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"

/* The use of a pseudo-random value. */
enum domain {
	DOMAIN_SUMS = 1,
	DOMAIN_RESULTS,
	DOMAIN_PAD,
	DOMAIN_RESULT_PAD,
	DOMAIN_BYE,
	DOMAIN_ASK,
	DOMAIN_PROBE,
	DOMAIN_PROBE_ANSWER,
};

/* ---- SipHash-2-4 ---- */

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotl(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1, s->v1 = rotl(s->v1, 13), s->v1 ^= s->v0, s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3, s->v3 = rotl(s->v3, 16), s->v3 ^= s->v2;
	s->v0 += s->v3, s->v3 = rotl(s->v3, 21), s->v3 ^= s->v0;
	s->v2 += s->v1, s->v1 = rotl(s->v1, 17), s->v1 ^= s->v2, s->v2 = rotl(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

uint64_t tag_siphash(const uint64_t key[2], const uint8_t *bytes, uint32_t length)
{
	struct sip s = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
	                key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
	uint64_t last = (uint64_t)length << 56;
	uint32_t whole = length / 8 * 8;

	for (uint32_t at = 0; at < whole; at += 8)
		sip_word(&s, bytes_get64(bytes + at));
	for (uint32_t at = whole; at < length; at++)
		last |= (uint64_t)bytes[at] << (8 * (at - whole));
	sip_word(&s, last);
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* ---- keys ---- */

static uint64_t random_of(const uint64_t key[2], enum domain domain, uint64_t number)
{
	uint8_t bytes[16];

	bytes_put64(bytes, domain);
	bytes_put64(bytes + 8, number);
	return tag_siphash(key, bytes, sizeof(bytes));
}

enum esp_status tag_keys_init(struct tag_keys *keys, const uint8_t secret[TAG_KEY_BYTES], uint32_t words_max,
                              struct error *err)
{
	const uint64_t key[2] = {bytes_get64(secret), bytes_get64(secret + 8)};

	assert(words_max >= 1 && words_max <= ATP_WORDS_MAX);
	*keys = (struct tag_keys){.words_max = words_max};
	keys->sums = calloc(2 * (size_t)words_max, sizeof(*keys->sums));
	if (!keys->sums)
		return error_set(err, ESP_ENOMEM, "no memory for the keys of %u words", words_max);
	keys->results = keys->sums + words_max;
	for (uint32_t i = 0; i < words_max; i++) {
		keys->sums[i] = random_of(key, DOMAIN_SUMS, i);
		keys->results[i] = random_of(key, DOMAIN_RESULTS, i);
	}
	keys->pad[0] = random_of(key, DOMAIN_PAD, 0);
	keys->pad[1] = random_of(key, DOMAIN_PAD, 1);
	return ESP_OK;
}

void tag_keys_fini(struct tag_keys *keys)
{
	if (keys->sums)
		explicit_bzero(keys->sums, 2 * (size_t)keys->words_max * sizeof(*keys->sums));
	free(keys->sums);
	explicit_bzero(keys, sizeof(*keys));
}

/* ---- sums ---- */

typedef uint32_t word_at __attribute__((aligned(1), may_alias));

/* As 64-bit numbers that add up like the words: with their sign where they have one. */
static uint64_t dot(const uint64_t *k, const word_at *words, uint32_t count, uint8_t kind)
{
	uint64_t sum = 0;

	if (kind == ATP_FIXED_32 || kind == ATP_SIGNED)
		for (uint32_t i = 0; i < count; i++)
			sum += k[i] * (uint64_t)(int64_t)(int32_t)words[i];
	else
		for (uint32_t i = 0; i < count; i++)
			sum += k[i] * words[i];
	return sum;
}

/* R(order), or the pad of something else. */
static uint64_t pad_of(const struct tag_keys *keys, enum domain domain, const struct atp_packet *packet, uint32_t order)
{
	uint8_t bytes[31];

	bytes_put64(bytes, packet->flow);
	bytes_put32(bytes + 8, packet->sequence);
	bytes_put32(bytes + 12, packet->call);
	bytes_put32(bytes + 16, order);
	bytes_put16(bytes + 20, packet->owner);
	bytes_put16(bytes + 22, packet->words);
	bytes[24] = packet->scale;
	bytes[25] = packet->kind;
	bytes[26] = (uint8_t)domain;
	bytes_put32(bytes + 27, 0);
	return tag_siphash(keys->pad, bytes, sizeof(bytes));
}

uint64_t tag_of_gradient(const struct tag_keys *keys, const struct atp_packet *packet, uint32_t order,
                         const uint32_t *words)
{
	assert(packet->words <= keys->words_max);
	return dot(keys->sums, words, packet->words, packet->kind) + pad_of(keys, DOMAIN_PAD, packet, order) -
	       pad_of(keys, DOMAIN_PAD, packet, order + 1);
}

/* The pads of contributors `first` to `end` of the order, which are all in the packet. */
static uint64_t pads_of_run(const struct tag_keys *keys, const struct atp_packet *packet, uint32_t first, uint32_t end)
{
	return pad_of(keys, DOMAIN_PAD, packet, first) - pad_of(keys, DOMAIN_PAD, packet, end);
}

static uint64_t pads_of_children(const struct tag_keys *keys, const struct atp_packet *packet, uint32_t order)
{
	uint64_t rest = packet->bitmap, pads = 0;

	while (rest) {
		uint32_t first = (uint32_t)__builtin_ctzll(rest), length = 0;
		while (first + length < ATP_CHILDREN_MAX && rest >> (first + length) & 1)
			rest &= ~(UINT64_C(1) << (first + length++));
		pads += pads_of_run(keys, packet, order + first, order + first + length);
	}
	return pads;
}

static uint64_t pads_of_groups(const struct tag_keys *keys, const struct shape *shape, const struct atp_packet *packet)
{
	uint64_t pads = 0;
	uint32_t first = 0, end = 0;

	for (uint16_t group = 0; group < ATP_CHILDREN_MAX; group++) {
		if (!(packet->bitmap >> group & 1))
			continue;
		struct shape_group whole = shape_group(shape, packet->owner, group);
		if (whole.order != end || end == first) {
			pads += first == end ? 0 : pads_of_run(keys, packet, first, end);
			first = whole.order;
		}
		end = whole.order + whole.fan_in;
	}
	return pads + pads_of_run(keys, packet, first, end);
}

bool tag_gradient_right(const struct tag_keys *keys, const struct shape *shape, const struct atp_packet *packet,
                        const void *words)
{
	if (packet->words > keys->words_max)
		return false;
	uint64_t pads = packet->hop == 1 ? pads_of_groups(keys, shape, packet) :
	                pads_of_children(keys, packet, shape_group(shape, packet->owner, packet->group).order);
	return dot(keys->sums, words, packet->words, packet->kind) + pads == packet->tag;
}

uint64_t tag_of_result(const struct tag_keys *keys, const struct atp_packet *packet, const void *words)
{
	assert(packet->words <= keys->words_max);
	return dot(keys->results, words, packet->words, packet->kind) + pad_of(keys, DOMAIN_RESULT_PAD, packet, 0);
}

uint64_t tag_of_bye(const struct tag_keys *keys, const struct atp_packet *packet)
{
	return pad_of(keys, DOMAIN_BYE, packet, 0);
}

uint64_t tag_of_ask(const struct tag_keys *keys, const struct atp_packet *packet)
{
	return pad_of(keys, DOMAIN_ASK, packet, 0);
}

uint64_t tag_of_probe(const struct tag_keys *keys, const struct atp_packet *packet)
{
	return pad_of(keys, packet->flags & ATP_DONE ? DOMAIN_PROBE_ANSWER : DOMAIN_PROBE, packet, 0);
}
