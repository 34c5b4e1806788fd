/*
 * agreement.h - the members of a failed group agree on which of them go on.
 *
 * Pure, as presence.h is: one for each member of a group, named by its place. It is told which members are gone and
 * which are accused, which messages came and what time it is; it tells which messages to send, and once the decision.
 *
 * It goes in rounds; round r is led by the member at place r modulo size. Each member joins the first round whose
 * leader it can hear, and tells the leader what it knows: members that are gone, members it hears nothing of, which
 * calls ended well here, and what it has accepted before. The leader waits for all members that it can hear itself, and
 * proposes terms: which members go on, on which channel. Members prepare to go on and accept; when all of them have,
 * the leader tells all members that it is decided. A leader that is gone or silent is left for the next one.
 *
 *     member                   leader
 *       | -- JOIN ------------> |   round, gone, accused, calls, what was accepted
 *       | <- PROPOSE ---------- |   members, channel, calls
 *       | -- ACCEPT ----------> |   or REFUSE: the channel is taken, or I have left your round
 *       | <- DECIDED ---------- |
 *
 * A member that has freed the group answers LEFT to all messages instead, and is as good as gone, from this group only.
 *
 * There are never two verdicts among members that hear each other: a member that joins a round takes part in no earlier
 * one; a leader that learns that anything was accepted before must propose the latest of it again; and it decides only
 * when all members that it can hear have accepted. Terms accepted before may name members that it cannot hear: they
 * stay behind, and all members that are told the verdict are told that too, as the new group has failed then. Two sets
 * of members that hear nothing of each other can decide apart, unless a quorum is asked for: then more than half of the
 * group must accept, and nothing is proposed before more than half have joined.
 *
 * Members that go on: all that have joined, less the accused ones. Of two that accuse each other, one stays: the one
 * with more accusers goes first. So one that was stopped and has thawed is left out, one with a broken link to another
 * costs one member and not two, and one that was cut off, and accuses all others, is the one to go.
 */
#ifndef RANK_MEMBER_AGREEMENT_H
#define RANK_MEMBER_AGREEMENT_H

#include "base/error.h"
#include "wire/verdict_msg.h"

struct agreement_events {
	void (*send)(void *context, uint32_t place, const uint8_t *bytes, size_t n);
	/*
	 * Makes everything ready for going on under these terms, and undoes what was made ready before. False: the channel
	 * is taken here; *out_channel is one that is not.
	 */
	bool (*prepare)(void *context, const struct verdict_terms *terms, const uint8_t *members, uint32_t *out_channel);
	/* A member was waited for in vain; it counts as accused by us. */
	void (*accuse)(void *context, uint32_t place);
};

struct agreement_config {
	uint32_t self, size;
	uint64_t interval_ns;
	bool quorum;
	bool was_accused; /* earlier, or away for long, and others may have gone on without us: all alone, we do not */
	const struct agreement_events *events;
	void *context;
};

struct agreement_place {
	bool is_gone;
	bool has_left;         /* it has freed the group: gone from it, not from the job */
	bool is_accused;       /* by any member */
	bool is_accused_by_us;
	bool accuses_us;
	bool has_declined;     /* it was to lead a round, and has left it for one that another leads */
	bool has_joined;       /* the round that we lead                          */
	bool has_accepted;     /* our last proposal */
	uint64_t heard_ns;
	uint64_t called_ns;
	uint64_t waits_ns;     /* since when we wait for a sign of life           */
	struct verdict_terms report; /* of its JOIN: its calls, its channel       */
	uint8_t *accuses;      /* bitmap; NULL: it accuses none */
};

struct agreement {
	struct agreement_config config;
	struct agreement_place *places;
	bool is_started, is_decided;
	bool goes_on;                 /* it is decided, and we are among the members that go on */
	uint32_t round;
	uint32_t attempt;             /* of the round that we lead               */
	bool has_proposed;
	bool is_prepared;             /* for what we have accepted               */
	struct verdict_terms own;     /* our calls, a channel that is free here  */
	struct verdict_terms accepted;
	uint8_t *accepted_members;
	uint8_t *behind;              /* once it is decided: members that were not asked, and so do not go on */
	struct verdict_terms best;    /* the latest that a joined member has accepted */
	uint8_t *best_members;
	struct verdict_terms proposal;
	uint8_t *proposal_members;
	uint32_t leader_waits_for;    /* the place that our leader waits for, as it said; or UINT32_MAX */
	uint64_t since_ns;            /* when we joined this round               */
	uint64_t complete_ns;         /* when all members that are not accused had joined; 0: not yet */
	uint64_t outnumbered_ns;      /* since when we leave it to our accusers; 0: we do not */
	uint64_t turned_ns;
	uint64_t listens_until_ns;    /* nothing is decided before: we were away  */
	uint8_t *scratch;             /* for a message: verdict_msg_most()       */
	uint8_t *gone_map, *accused_map, *left_map;
};

ESP_CHECKED enum esp_status agreement_init(struct agreement *agreement, const struct agreement_config *config);
void agreement_fini(struct agreement *agreement);

/*
 * We take part from now on: calls up to `everywhere` ended well here, none beyond `somewhere`, and `channel` is free
 * here.
 */
void agreement_start(struct agreement *agreement, uint64_t everywhere, uint64_t somewhere, uint32_t channel,
                     uint64_t now_ns);

void agreement_gone(struct agreement *agreement, uint32_t place, uint64_t now_ns);
void agreement_accused(struct agreement *agreement, uint32_t place, uint32_t by, uint64_t now_ns);
/* Any sign of life. */
void agreement_heard(struct agreement *agreement, uint32_t place, uint64_t now_ns);
/* Before it is started too. A message that is none is ignored. */
void agreement_message(struct agreement *agreement, uint32_t from, const uint8_t *bytes, size_t n, uint64_t now_ns);

/* Does all that is due. Returns the time of the next call. */
uint64_t agreement_turn(struct agreement *agreement, uint64_t now_ns);

/* Once it is decided: is this one a member of the new group, and does it go on? */
static inline bool agreement_includes(const struct agreement *agreement, uint32_t place)
{
	return verdict_bit(agreement->accepted_members, place);
}
static inline bool agreement_keeps(const struct agreement *agreement, uint32_t place)
{
	return agreement_includes(agreement, place) && !verdict_bit(agreement->behind, place);
}
/* Has it freed the group, and is so in the job still, although it is not kept? */
static inline bool agreement_has_left(const struct agreement *agreement, uint32_t place)
{
	return agreement->places[place].has_left;
}
/* Until it is: the place that is waited for, or UINT32_MAX. */
uint32_t agreement_waits_for(const struct agreement *agreement);

#endif
