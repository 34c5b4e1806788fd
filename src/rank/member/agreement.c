#include "rank/member/agreement_parts.h"

#include <stdlib.h>
#include <string.h>

#define CALLS 64u /* calls to a member that is waited for, per interval */

enum esp_status agreement_init(struct agreement *agreement, const struct agreement_config *config)
{
	size_t map = verdict_map_bytes(config->size);

	*agreement = (struct agreement){.config = *config, .leader_waits_for = NO_PLACE};
	agreement->places = calloc(config->size, sizeof(*agreement->places));
	agreement->accepted_members = calloc(1, map);
	agreement->behind = calloc(1, map);
	agreement->best_members = calloc(1, map);
	agreement->proposal_members = calloc(1, map);
	agreement->gone_map = calloc(1, map);
	agreement->accused_map = calloc(1, map);
	agreement->left_map = calloc(1, map);
	agreement->scratch = calloc(1, verdict_msg_most(config->size));
	if (agreement->places && agreement->accepted_members && agreement->behind && agreement->best_members &&
	    agreement->proposal_members && agreement->gone_map && agreement->accused_map && agreement->left_map &&
	    agreement->scratch)
		return ESP_OK;
	agreement_fini(agreement);
	return ESP_ENOMEM;
}

void agreement_fini(struct agreement *agreement)
{
	for (uint32_t i = 0; agreement->places && i < agreement->config.size; i++)
		free(agreement->places[i].accuses);
	free(agreement->places);
	free(agreement->accepted_members);
	free(agreement->behind);
	free(agreement->best_members);
	free(agreement->proposal_members);
	free(agreement->gone_map);
	free(agreement->accused_map);
	free(agreement->left_map);
	free(agreement->scratch);
	*agreement = (struct agreement){0};
}

/* ---- sending ---- */

/* Members that are not there, as this member knows it. */
static void fill_maps(struct agreement *agreement)
{
	size_t map = verdict_map_bytes(agreement->config.size);

	memset(agreement->gone_map, 0, map);
	memset(agreement->left_map, 0, map);
	memset(agreement->accused_map, 0, map);
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		const struct agreement_place *at = &agreement->places[i];

		if (at->has_left)
			verdict_set_bit(agreement->left_map, i);
		else if (at->is_gone)
			verdict_set_bit(agreement->gone_map, i);
		else if (at->is_accused_by_us)
			verdict_set_bit(agreement->accused_map, i);
	}
}

static void send(struct agreement *agreement, uint32_t to, const struct verdict_msg *msg)
{
	size_t n = verdict_msg_encode(msg, agreement->scratch);

	agreement->config.events->send(agreement->config.context, to, agreement->scratch, n);
}

/* One without bitmaps. */
static void send_short(struct agreement *agreement, uint32_t to, enum verdict_type type, uint32_t channel)
{
	struct verdict_msg msg = {
		.type = (uint8_t)type,
		.size = agreement->config.size,
		.terms = {.ballot = ballot_of(agreement->round, 0), .channel = channel},
	};

	send(agreement, to, &msg);
}

void agreement_send_terms(struct agreement *agreement, uint32_t to, enum verdict_type type,
                          const struct verdict_terms *terms, const uint8_t *members)
{
	struct verdict_msg msg = {
		.type = (uint8_t)type,
		.size = agreement->config.size,
		.terms = *terms,
		.members = members,
		.behind = agreement->behind,
		.left = agreement->left_map,
	};

	fill_maps(agreement);
	send(agreement, to, &msg);
}

static void send_decided(struct agreement *agreement, uint32_t to)
{
	agreement_send_terms(agreement, to, VERDICT_DECIDED, &agreement->accepted, agreement->accepted_members);
}

/* ---- members that can be heard ---- */

/*
 * An accused member does not lead as long as there is another. That other one may know of an accusation that we have
 * not heard of, and so leave the round to us as we do to it: a member that has declined is not waited for.
 */
static bool can_lead(const struct agreement *agreement, uint32_t place)
{
	if (!is_available(agreement, place))
		return false;
	for (uint32_t i = 0; agreement->places[place].is_accused && i < agreement->config.size; i++) {
		if (is_available(agreement, i) && !agreement->places[i].is_accused && !agreement->places[i].has_declined)
			return false;
	}
	return true;
}

/* The leader of our round is in a later one, which it does not lead. */
static void notice_declining(struct agreement *agreement, uint32_t from, const struct verdict_msg *msg)
{
	uint32_t round = round_of(msg->terms.ballot);

	if (agreement->is_started && from == leader_of(agreement, agreement->round) && round > agreement->round &&
	    leader_of(agreement, round) != from)
		agreement->places[from].has_declined = true;
}

/* ---- joining a round ---- */

static void forget_joins(struct agreement *agreement)
{
	for (uint32_t i = 0; i < agreement->config.size; i++)
		agreement->places[i].has_joined = agreement->places[i].has_accepted = false;
	agreement->best = (struct verdict_terms){0};
	agreement->has_proposed = false;
	agreement->attempt = 0;
	agreement->complete_ns = 0;
	agreement->outnumbered_ns = 0;
}

/* The leader takes note of what was accepted before, by a member or by itself. */
static void learn_accepted(struct agreement *agreement, const struct verdict_terms *terms, const uint8_t *members)
{
	if (terms->ballot <= agreement->best.ballot)
		return;
	agreement->best = *terms;
	memcpy(agreement->best_members, members, verdict_map_bytes(agreement->config.size));
}

static void join_round(struct agreement *agreement, uint64_t now)
{
	uint32_t leader = leader_of(agreement, agreement->round), self = agreement->config.self;
	struct verdict_msg msg = {
		.type = VERDICT_JOIN,
		.size = agreement->config.size,
		.terms = agreement->own,
		.gone = agreement->gone_map,
		.left = agreement->left_map,
		.accused = agreement->accused_map,
	};

	if (!is_void(&agreement->accepted)) { /* a void one says nothing about other members that are enough */
		msg.accepted = agreement->accepted;
		msg.members = agreement->accepted_members;
	}
	agreement->since_ns = now;
	agreement->leader_waits_for = NO_PLACE;
	if (leader == self) {
		struct agreement_place *own = &agreement->places[self];

		own->has_joined = true;
		own->report = agreement->own;
		if (msg.accepted.ballot != 0)
			learn_accepted(agreement, &agreement->accepted, agreement->accepted_members);
		return;
	}
	fill_maps(agreement);
	msg.terms.ballot = ballot_of(agreement->round, 0);
	send(agreement, leader, &msg);
}

/* Rounds only go up; in a new one nothing is left of what we have led before. */
static void move_to(struct agreement *agreement, uint32_t round, uint64_t now)
{
	agreement->round = round;
	while (!can_lead(agreement, leader_of(agreement, agreement->round)))
		agreement->round++; /* at least we can ourselves, so this ends */
	forget_joins(agreement);
	join_round(agreement, now);
}

void agreement_start(struct agreement *agreement, uint64_t everywhere, uint64_t somewhere, uint32_t channel,
                     uint64_t now)
{
	if (agreement->is_started)
		return;
	agreement->is_started = true;
	agreement->own = (struct verdict_terms){.everywhere = everywhere, .somewhere = somewhere, .channel = channel};
	agreement->turned_ns = now;
	for (uint32_t i = 0; i < agreement->config.size; i++)
		agreement_heard(agreement, i, now);
	/* Members that joined us before we began have joined the round that they named: keep them if it is this one. */
	uint32_t round = agreement->round;
	while (!can_lead(agreement, leader_of(agreement, round)))
		round++;
	if (round != agreement->round)
		move_to(agreement, round, now);
	else
		join_round(agreement, now);
}

/* ---- accepting ---- */

/* Is it what we have prepared for already? */
static bool is_prepared_for(const struct agreement *agreement, const struct verdict_terms *terms,
                            const uint8_t *members)
{
	return agreement->is_prepared && agreement->accepted.channel == terms->channel &&
	       memcmp(agreement->accepted_members, members, verdict_map_bytes(agreement->config.size)) == 0;
}

/*
 * Accepts the proposal, if it can. Terms that others accepted before cannot be changed any more: a member that cannot
 * prepare for them gives its vote, and stays behind. A member that is prepared for them does not prepare again: others
 * may have heard that it is decided, and have begun to send.
 */
bool agreement_accept(struct agreement *agreement, const struct verdict_terms *terms, const uint8_t *members,
                      uint32_t *out_channel)
{
	bool is_in = verdict_bit(members, agreement->config.self) && !is_void(terms);

	if (!is_in)
		agreement->is_prepared = false;
	else if (!is_prepared_for(agreement, terms, members))
		agreement->is_prepared =
			agreement->config.events->prepare(agreement->config.context, terms, members, out_channel);
	if (is_in && !agreement->is_prepared && !(terms->flags & VERDICT_REPEATED))
		return false;
	agreement->accepted = *terms;
	memmove(agreement->accepted_members, members, verdict_map_bytes(agreement->config.size));
	return true;
}

/*
 * Accepted terms are final. A member that is named in them but was not asked, as the leader heard nothing of it, stays
 * behind: it may have prepared later, and others have sent to it before.
 */
void agreement_settle(struct agreement *agreement, bool is_as_prepared)
{
	agreement->is_decided = true;
	agreement->goes_on = is_as_prepared && agreement->is_prepared && !is_void(&agreement->accepted) &&
	                     !verdict_bit(agreement->behind, agreement->config.self);
}

/* ---- events ---- */

/*
 * As in presence.c: a member that was away resets its timers for all others first; and it listens to what was said
 * meanwhile before it leads a round.
 */
static void notice_absence(struct agreement *agreement, uint64_t now)
{
	if (now <= agreement->turned_ns + agreement->config.interval_ns / 4)
		return;
	if (now >= agreement->turned_ns + agreement->config.interval_ns - agreement->config.interval_ns / 4)
		agreement->config.was_accused = true; /* perhaps: as presence.c has it */
	for (uint32_t i = 0; i < agreement->config.size; i++)
		agreement_heard(agreement, i, now);
	agreement->turned_ns = now;
	agreement->listens_until_ns = now + agreement->config.interval_ns / 8;
}

static void look(struct agreement *agreement, uint64_t now)
{
	if (!agreement->is_started || agreement->is_decided)
		return;
	notice_absence(agreement, now);
	if (!can_lead(agreement, leader_of(agreement, agreement->round)))
		move_to(agreement, agreement->round, now);
	if (is_leading(agreement) && now >= agreement->listens_until_ns)
		agreement_lead(agreement, now);
}

void agreement_gone(struct agreement *agreement, uint32_t place, uint64_t now)
{
	if (place == agreement->config.self || agreement->places[place].is_gone)
		return;
	agreement->places[place].is_gone = true;
	look(agreement, now);
}

void agreement_accused(struct agreement *agreement, uint32_t place, uint32_t by, uint64_t now)
{
	struct agreement_place *at = &agreement->places[place];
	uint32_t self = agreement->config.self;

	at->is_accused = true;
	if (place == self)
		agreement->places[by].accuses_us = true;
	else if (by == self)
		at->is_accused_by_us = true;
	look(agreement, now);
}

void agreement_heard(struct agreement *agreement, uint32_t place, uint64_t now)
{
	struct agreement_place *at = &agreement->places[place];

	at->heard_ns = now > at->heard_ns ? now : at->heard_ns;
}

/* It has freed the group. Its messages count for nothing any more, and no member waits for it, but it is alive. */
static void on_left(struct agreement *agreement, uint32_t place)
{
	if (place != agreement->config.self)
		agreement->places[place].is_gone = agreement->places[place].has_left = true;
}

static void on_join(struct agreement *agreement, uint32_t from, const struct verdict_msg *msg, uint64_t now)
{
	uint32_t round = round_of(msg->terms.ballot), self = agreement->config.self;
	struct agreement_place *at = &agreement->places[from];
	size_t map = verdict_map_bytes(agreement->config.size);

	if (leader_of(agreement, round) != self || round < agreement->round)
		return;
	if (round > agreement->round) {
		/* A member that joins us has left all earlier rounds: they cannot come to an end without it. */
		if (agreement->is_started) {
			move_to(agreement, round, now);
		} else {
			agreement->round = round;
			forget_joins(agreement);
		}
		if (agreement->round != round)
			return; /* it is not for us to lead; it will hear in which round we are */
	}
	if (!at->accuses)
		at->accuses = malloc(map);
	if (at->accuses)
		memcpy(at->accuses, msg->accused, map);
	at->has_joined = true;
	at->report = msg->terms;
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (verdict_bit(msg->gone, i) && i != self)
			agreement->places[i].is_gone = true;
		if (verdict_bit(msg->left, i))
			on_left(agreement, i);
		if (verdict_bit(msg->accused, i))
			agreement->places[i].is_accused = true;
	}
	if (msg->accepted.ballot != 0)
		learn_accepted(agreement, &msg->accepted, msg->members);
	/* It came late, after a member had been given up, or again: then the proposal does not know it yet. */
	if (agreement->has_proposed)
		agreement_propose(agreement);
}

static void on_propose(struct agreement *agreement, uint32_t from, const struct verdict_msg *msg)
{
	uint32_t channel = msg->terms.channel;

	if (!agreement->is_started || round_of(msg->terms.ballot) != agreement->round ||
	    leader_of(agreement, agreement->round) != from || msg->terms.ballot <= agreement->accepted.ballot) {
		send_short(agreement, from, VERDICT_REFUSE, 0);
		return;
	}
	if (!agreement_accept(agreement, &msg->terms, msg->members, &channel)) {
		struct verdict_msg answer = {.type = VERDICT_REFUSE, .size = msg->size, .terms = msg->terms};

		answer.terms.channel = channel;
		send(agreement, from, &answer);
		return;
	}
	struct verdict_msg answer = {.type = VERDICT_ACCEPT, .size = msg->size, .terms = msg->terms};
	send(agreement, from, &answer);
}

static void on_refuse(struct agreement *agreement, const struct verdict_msg *msg)
{
	bool is_about_this =
		agreement->has_proposed && is_leading(agreement) && msg->terms.ballot == agreement->proposal.ballot;

	if (is_about_this && agreement->best.ballot == 0) {
		agreement_use_channel(agreement, msg->terms.channel);
		agreement_propose(agreement);
	}
}

static void on_decided(struct agreement *agreement, uint32_t from, const struct verdict_msg *msg)
{
	/*
	 * Too few for a quorum: that holds for the members that followed that leader; others may be enough, without them.
	 */
	if (is_void(&msg->terms) && from != leader_of(agreement, agreement->round)) {
		agreement->places[from].is_gone = true;
		return;
	}
	size_t map = verdict_map_bytes(agreement->config.size);
	bool is_as_prepared = agreement->accepted.channel == msg->terms.channel &&
	                      memcmp(agreement->accepted_members, msg->members, map) == 0;
	agreement->accepted = msg->terms;
	memcpy(agreement->accepted_members, msg->members, map);
	memcpy(agreement->behind, msg->behind, map);
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (verdict_bit(msg->left, i))
			on_left(agreement, i);
	}
	agreement_settle(agreement, is_as_prepared);
}

/*
 * The round of a member that we listen to: our leader has left for another one, or a member that is not accused is
 * ahead of us.
 */
static void follow(struct agreement *agreement, uint32_t from, uint32_t round, uint64_t now)
{
	bool is_leader = from == leader_of(agreement, agreement->round);

	if (round > agreement->round && agreement->is_started && (is_leader || !agreement->places[from].is_accused))
		move_to(agreement, round, now);
	else if (round > agreement->round && agreement->is_started && is_leading(agreement) &&
	         agreement->places[from].has_joined) {
		/* It has left us for good and we do not follow. */
		agreement->config.events->accuse(agreement->config.context, from);
		agreement_accused(agreement, from, agreement->config.self, now);
	}
}

void agreement_message(struct agreement *agreement, uint32_t from, const uint8_t *bytes, size_t n, uint64_t now)
{
	struct verdict_msg msg;

	if (from == agreement->config.self || !verdict_msg_decode(bytes, n, agreement->config.size, &msg))
		return;
	agreement_heard(agreement, from, now);
	if (agreement->is_decided) {
		if (msg.type != VERDICT_DECIDED && msg.type != VERDICT_HERE && msg.type != VERDICT_LEFT)
			send_decided(agreement, from);
		return;
	}
	if (!is_available(agreement, from) && msg.type != VERDICT_DECIDED) {
		/* For us it is not there. It shall know that we are; and it may know how all ended. */
		if (msg.type == VERDICT_CALL)
			send_short(agreement, from, VERDICT_HERE, NO_PLACE);
		return;
	}
	notice_declining(agreement, from, &msg);
	switch (msg.type) {
	case VERDICT_CALL:
		send_short(agreement, from, VERDICT_HERE, agreement_waits_for(agreement));
		follow(agreement, from, round_of(msg.terms.ballot), now);
		break;
	case VERDICT_HERE:
		if (from == leader_of(agreement, agreement->round))
			agreement->leader_waits_for = msg.terms.channel < agreement->config.size ? msg.terms.channel : NO_PLACE;
		follow(agreement, from, round_of(msg.terms.ballot), now);
		break;
	case VERDICT_JOIN:
		on_join(agreement, from, &msg, now);
		break;
	case VERDICT_PROPOSE:
		on_propose(agreement, from, &msg);
		break;
	case VERDICT_ACCEPT:
		if (agreement->has_proposed && is_leading(agreement) && msg.terms.ballot == agreement->proposal.ballot)
			agreement->places[from].has_accepted = true;
		break;
	case VERDICT_REFUSE:
		on_refuse(agreement, &msg);
		follow(agreement, from, round_of(msg.terms.ballot), now);
		break;
	case VERDICT_LEFT:
		on_left(agreement, from);
		break;
	default:
		on_decided(agreement, from, &msg);
		break;
	}
	look(agreement, now);
}

/* ---- time ---- */

static bool waits_for(const struct agreement *agreement, uint32_t place, uint64_t now)
{
	const struct agreement_place *at = &agreement->places[place];

	if (place == agreement->config.self || !is_available(agreement, place))
		return false;
	if (!is_leading(agreement))
		return place == leader_of(agreement, agreement->round);
	if (agreement->has_proposed)
		return agreement_is_asked(agreement, place) && !at->has_accepted;
	return !at->has_joined && (agreement_is_candidate(agreement, place, now) || at->accuses_us);
}

uint32_t agreement_waits_for(const struct agreement *agreement)
{
	if (!agreement->is_started)
		return agreement->config.self; /* our own caller */
	uint32_t leader = leader_of(agreement, agreement->round);
	if (leader != agreement->config.self && agreement->places[leader].heard_ns > agreement->since_ns)
		return agreement->leader_waits_for; /* it knows */
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (waits_for(agreement, i, 0))
			return i;
	}
	return NO_PLACE;
}

/* Calls members that are waited for, and accuses those that do not answer. True: one was accused. */
static bool call_all(struct agreement *agreement, uint64_t now)
{
	uint64_t interval = agreement->config.interval_ns;

	for (uint32_t i = 0; i < agreement->config.size; i++) {
		struct agreement_place *at = &agreement->places[i];
		uint64_t limit = at->is_accused ? interval / 4 : interval - interval / 8;

		if (!waits_for(agreement, i, now))
			continue;
		/* In whatever round: it has been called since, and has not answered. */
		if (at->waits_ns == 0 || at->heard_ns > at->waits_ns)
			at->waits_ns = now;
		if (now >= at->waits_ns + limit) {
			agreement->config.events->accuse(agreement->config.context, i);
			agreement_accused(agreement, i, agreement->config.self, now);
			return true;
		}
		if (now >= at->called_ns + interval / CALLS) {
			at->called_ns = now;
			send_short(agreement, i, VERDICT_CALL, 0);
		}
	}
	return false;
}

uint64_t agreement_turn(struct agreement *agreement, uint64_t now)
{
	uint64_t step = agreement->config.interval_ns / CALLS;

	if (!agreement->is_started || agreement->is_decided)
		return UINT64_MAX;
	notice_absence(agreement, now);
	agreement->turned_ns = now;
	while (!agreement->is_decided && call_all(agreement, now))
		;
	look(agreement, now); /* the time of a member may be over */
	return agreement->is_decided ? UINT64_MAX : now + step;
}
