/*
 * agreement_parts.h - shared by agreement.c (a member) and agreement_lead.c (the leader of a round). Private to the
 * two.
 */
#ifndef RANK_MEMBER_AGREEMENT_PARTS_H
#define RANK_MEMBER_AGREEMENT_PARTS_H

#include <assert.h>

#include "rank/member/agreement.h"

#define NO_PLACE UINT32_MAX

static inline uint64_t ballot_of(uint32_t round, uint32_t attempt)
{
	return (uint64_t)round << 32 | attempt;
}

static inline uint32_t round_of(uint64_t ballot)
{
	return (uint32_t)(ballot >> 32);
}

static inline uint32_t leader_of(const struct agreement *agreement, uint32_t round)
{
	assert(agreement->config.size > 0);
	return round % agreement->config.size;
}

static inline bool is_leading(const struct agreement *agreement)
{
	return leader_of(agreement, agreement->round) == agreement->config.self;
}

/* No member goes on under these terms. */
static inline bool is_void(const struct verdict_terms *terms)
{
	return (terms->flags & VERDICT_NO_QUORUM) != 0;
}

/* Can we hear it? */
static inline bool is_available(const struct agreement *agreement, uint32_t place)
{
	const struct agreement_place *at = &agreement->places[place];

	return !at->is_gone && !at->is_accused_by_us;
}

/* ---- agreement.c ---- */

void agreement_send_terms(struct agreement *agreement, uint32_t to, enum verdict_type type,
                          const struct verdict_terms *terms, const uint8_t *members);
/* Takes what is proposed; false: its channel is taken here, and another one is not. */
bool agreement_accept(struct agreement *agreement, const struct verdict_terms *terms, const uint8_t *members,
                      uint32_t *out_channel);
/* Accepted terms are final. is_as_prepared: they are the ones that we have prepared for, if we have. */
void agreement_settle(struct agreement *agreement, bool is_as_prepared);

/* ---- agreement_lead.c ---- */

/* Does the leader still count on this member to join? */
bool agreement_is_candidate(const struct agreement *agreement, uint32_t place, uint64_t now_ns);
/* Has it to accept what is proposed? */
bool agreement_is_asked(const struct agreement *agreement, uint32_t place);
/* The next terms have this channel, whatever was reported before. */
void agreement_use_channel(struct agreement *agreement, uint32_t channel);
/* Draws up terms, or takes the latest that were accepted, and asks all. */
void agreement_propose(struct agreement *agreement);
/* Goes on as far as it can. */
void agreement_lead(struct agreement *agreement, uint64_t now_ns);

#endif
