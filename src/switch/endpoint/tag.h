/*
 * tag.h - tags of contributions that add up like the words they cover.
 *
 * The tag of a contribution is the sum of K[i] * word[i] and a pad, modulo 2^64. No sum of words leaves its word, so
 * the tag of a sum is the sum of the tags: a switch adds them like data and needs no key. K is a secret of the flow and
 * is used again, because every contribution has a pad of its own (Wegman and Carter). Pads telescope: that of the
 * contributor at place j of the order is R(j) - R(j + 1), so a run of contributors costs two pseudo-random values,
 * whatever its length. R covers everything that contributions to a number have in common, so a sum over different calls
 * or scales fails.
 *
 * A change of a word by an odd multiple of 2^a passes with probability 2^-(64 - a): 2^-33 at worst. A member that has
 * the key can forge any other. Results, byes and asks have keys and pads of their own.
 *
 * Pure; the keys are constant once they are made.
 */
#ifndef SWITCH_ENDPOINT_TAG_H
#define SWITCH_ENDPOINT_TAG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "switch/endpoint/shape.h"

#define TAG_KEY_BYTES 16u

struct tag_keys {
	uint64_t pad[2];          /* key of R */
	uint64_t *sums, *results; /* K of contributions and of results, words_max each */
	uint32_t words_max;
};

/* From a secret that all members have and that belongs to this flow alone. ESP_ENOMEM. */
ESP_CHECKED enum esp_status tag_keys_init(struct tag_keys *keys, const uint8_t secret[TAG_KEY_BYTES],
                                          uint32_t words_max, struct error *err);
void tag_keys_fini(struct tag_keys *keys); /* wipes them; zeroed: nothing */

/* The tag of one contributor's words, for the header that goes with them; `order` is its place (shape.h). */
uint64_t tag_of_gradient(const struct tag_keys *keys, const struct atp_packet *packet, uint32_t order,
                         const uint32_t *words);

/*
 * Is packet->tag that of a sum of exactly the contributions in its bitmap? The header fits the shape. words: at any
 * address.
 */
bool tag_gradient_right(const struct tag_keys *keys, const struct shape *shape, const struct atp_packet *packet,
                        const void *words);

uint64_t tag_of_result(const struct tag_keys *keys, const struct atp_packet *packet, const void *words);
/* A bye says which member (packet->owner) has all results below packet->sequence. */
uint64_t tag_of_bye(const struct tag_keys *keys, const struct atp_packet *packet);
uint64_t tag_of_ask(const struct tag_keys *keys, const struct atp_packet *packet);
/* A probe, or its answer (ATP_DONE), from packet->owner to member packet->sequence. */
uint64_t tag_of_probe(const struct tag_keys *keys, const struct atp_packet *packet);

/* SipHash-2-4 of Aumasson and Bernstein, for tests of it. */
uint64_t tag_siphash(const uint64_t key[2], const uint8_t *bytes, uint32_t length);

#endif
