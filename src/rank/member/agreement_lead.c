#include "rank/member/agreement_parts.h"

#include <string.h>

#define PROPOSALS 64u /* in a row that we cannot prepare for ourselves */

/* ---- members that are waited for ---- */

/* Does the leader count on this member? An accused one has had its time to join; one that accuses us will not join. */
bool agreement_is_candidate(const struct agreement *agreement, uint32_t place, uint64_t now)
{
	const struct agreement_place *at = &agreement->places[place];
	uint64_t grace = agreement->config.interval_ns / 2;
	bool had_its_time = at->is_accused && agreement->complete_ns != 0 && now >= agreement->complete_ns + grace;

	return is_available(agreement, place) && (at->has_joined || (!had_its_time && !at->accuses_us));
}

/*
 * Members that accuse us are there, and will go on without us. If they are as many as those that have joined us, it is
 * not for us to decide. A quorum makes that clear without counting.
 */
static bool is_outnumbered(const struct agreement *agreement)
{
	uint32_t joined = 0, accusers = 0;

	if (agreement->config.quorum)
		return false;

	for (uint32_t i = 0; i < agreement->config.size; i++) {
		const struct agreement_place *at = &agreement->places[i];

		joined += at->has_joined && is_available(agreement, i);
		accusers += at->accuses_us && !at->has_joined && is_available(agreement, i);
	}
	return accusers >= joined && accusers > 0;
}

/* Do we leave it to our accusers? Not for ever: they may be waiting too, for others that wait for us. */
static bool leaves_it(struct agreement *agreement, uint64_t now)
{
	if (!is_outnumbered(agreement)) {
		agreement->outnumbered_ns = 0;
		return false;
	}
	if (agreement->outnumbered_ns == 0)
		agreement->outnumbered_ns = now;
	return now < agreement->outnumbered_ns + 2 * agreement->config.interval_ns;
}

/* Have all members joined that the leader counts on; and have all but some that are accused? */
static bool all_joined(const struct agreement *agreement, bool but_accused, uint64_t now)
{
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		const struct agreement_place *at = &agreement->places[i];

		if (agreement_is_candidate(agreement, i, now) && !at->has_joined && !(but_accused && at->is_accused))
			return false;
	}
	return true;
}

/* ---- proposing ---- */

static bool accuses(const struct agreement *agreement, uint32_t one, uint32_t other)
{
	if (one == agreement->config.self)
		return agreement->places[other].is_accused_by_us && !agreement->places[other].is_gone;
	return agreement->places[one].accuses && verdict_bit(agreement->places[one].accuses, other);
}

/* How many of the members accuse this one, and how many it accuses. */
static void count_accusations(const struct agreement *agreement, const uint8_t *members, uint32_t place,
                              uint32_t *out_by, uint32_t *out_of)
{
	*out_by = *out_of = 0;
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (i == place || !verdict_bit(members, i))
			continue;
		*out_by += accuses(agreement, i, place);
		*out_of += accuses(agreement, place, i);
	}
}

/*
 * The member that has most accusers; of several, the one that accuses most itself; of several, the last. NO_PLACE: none
 * is accused.
 */
static uint32_t find_most_accused(const struct agreement *agreement, const uint8_t *members)
{
	uint32_t found = NO_PLACE, most_by = 0, most_of = 0;

	for (uint32_t i = 0; i < agreement->config.size; i++) {
		uint32_t by, of;

		if (!verdict_bit(members, i))
			continue;
		count_accusations(agreement, members, i, &by, &of);
		if (by > 0 && (by > most_by || (by == most_by && of >= most_of))) {
			found = i;
			most_by = by;
			most_of = of;
		}
	}
	return found;
}

static uint32_t count_members(const struct agreement *agreement, const uint8_t *members)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < agreement->config.size; i++)
		count += verdict_bit(members, i);
	return count;
}

static bool is_quorum(const struct agreement *agreement, uint32_t count)
{
	return !agreement->config.quorum || count > agreement->config.size / 2;
}

/* New terms, from the reports of members that have joined. */
static void draw_up(struct agreement *agreement)
{
	struct verdict_terms *terms = &agreement->proposal;
	uint8_t *members = agreement->proposal_members;
	uint32_t out;

	memset(members, 0, verdict_map_bytes(agreement->config.size));
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (agreement->places[i].has_joined && is_available(agreement, i))
			verdict_set_bit(members, i);
	}
	while ((out = find_most_accused(agreement, members)) != NO_PLACE)
		members[out / 8] = (uint8_t)(members[out / 8] & ~(1u << out % 8));
	/* Reports without a vote count too: calls that ended well on a member that is left out ended somewhere. */
	*terms = (struct verdict_terms){.everywhere = UINT64_MAX, .channel = terms->channel};
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		const struct verdict_terms *report = &agreement->places[i].report;

		if (!agreement->places[i].has_joined)
			continue;
		terms->channel = report->channel > terms->channel ? report->channel : terms->channel;
		terms->somewhere = report->somewhere > terms->somewhere ? report->somewhere : terms->somewhere;
		if (verdict_bit(members, i) && report->everywhere < terms->everywhere)
			terms->everywhere = report->everywhere;
	}
	if (terms->everywhere == UINT64_MAX)
		terms->everywhere = 0;
	uint32_t count = count_members(agreement, members);
	bool is_alone = count == 1 && agreement->config.size > 1 &&
	                (agreement->config.was_accused || agreement->places[agreement->config.self].is_accused);
	/*
	 * A member that was given up by others, and is alone now or has fewer than they, cannot know that they do not go on
	 * somewhere.
	 */
	if (!is_quorum(agreement, count) || is_alone || is_outnumbered(agreement))
		terms->flags = VERDICT_NO_QUORUM;
}

/*
 * Members that have to accept: all that would go on. Under a quorum all others that can vote too; they vote, and
 * prepare nothing.
 */
bool agreement_is_asked(const struct agreement *agreement, uint32_t place)
{
	return agreement->places[place].has_joined && is_available(agreement, place);
}

/*
 * Numbers of channels begin anew behind the last one: what others have said before may be higher, and still be the one
 * that is taken.
 */
void agreement_use_channel(struct agreement *agreement, uint32_t channel)
{
	for (uint32_t i = 0; i < agreement->config.size; i++)
		agreement->places[i].report.channel = 0;
	agreement->proposal.channel = channel;
}

void agreement_propose(struct agreement *agreement)
{
	uint32_t channel, last = agreement->attempt + PROPOSALS;

	/* No member is asked twice under one ballot: an answer belongs to the last proposal. */
	do {
		uint64_t ballot = ballot_of(agreement->round, ++agreement->attempt);

		if (agreement->best.ballot != 0) {
			agreement->proposal = agreement->best;
			memcpy(agreement->proposal_members, agreement->best_members, verdict_map_bytes(agreement->config.size));
			agreement->proposal.flags |= VERDICT_REPEATED;
		} else {
			draw_up(agreement);
		}
		agreement->proposal.ballot = ballot;
		channel = agreement->proposal.channel;
		if (agreement_accept(agreement, &agreement->proposal, agreement->proposal_members, &channel))
			break;
		agreement_use_channel(agreement, channel); /* draw_up() goes on from there */
	} while (agreement->attempt < last); /* if there is no channel for us, the others may find one */
	agreement->has_proposed = true;
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		agreement->places[i].has_accepted = i == agreement->config.self;
		if (i != agreement->config.self && agreement_is_asked(agreement, i))
			agreement_send_terms(agreement, i, VERDICT_PROPOSE, &agreement->proposal, agreement->proposal_members);
	}
}

static void decide(struct agreement *agreement)
{
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (agreement_includes(agreement, i) && !agreement->places[i].has_accepted)
			verdict_set_bit(agreement->behind, i);
	}
	agreement_settle(agreement, true);
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (i != agreement->config.self && is_available(agreement, i))
			agreement_send_terms(agreement, i, VERDICT_DECIDED, &agreement->accepted, agreement->accepted_members);
	}
}

static uint32_t count_joined(const struct agreement *agreement)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < agreement->config.size; i++)
		count += agreement->places[i].has_joined;
	return count;
}

/*
 * Too few have joined to know what others have accepted. So no member is asked: terms accepted before would look later
 * than they are if they were accepted anew, and than those that others may have decided; and a member that takes part
 * in a void vote forgets what it has accepted.
 */
static void give_up(struct agreement *agreement)
{
	draw_up(agreement);
	agreement->proposal.ballot = ballot_of(agreement->round, ++agreement->attempt);
	agreement->proposal.flags |= VERDICT_NO_QUORUM;
	agreement->accepted = agreement->proposal;
	memcpy(agreement->accepted_members, agreement->proposal_members, verdict_map_bytes(agreement->config.size));
	decide(agreement);
}

/* Does the proposal name a member that cannot take part any more? Terms accepted before stay as they are. */
static bool is_outdated(const struct agreement *agreement)
{
	for (uint32_t i = 0; agreement->best.ballot == 0 && i < agreement->config.size; i++) {
		if (verdict_bit(agreement->proposal_members, i) && !is_available(agreement, i))
			return true;
	}
	return false;
}

void agreement_lead(struct agreement *agreement, uint64_t now)
{
	uint32_t votes = 0;

	if (!agreement->has_proposed) {
		if (agreement->complete_ns == 0 && all_joined(agreement, true, now))
			agreement->complete_ns = now;
		if (!all_joined(agreement, false, now) || leaves_it(agreement, now))
			return;
		if (!is_quorum(agreement, count_joined(agreement))) {
			give_up(agreement);
			return;
		}
		agreement_propose(agreement);
	} else if (is_outdated(agreement)) {
		agreement_propose(agreement);
	}
	for (uint32_t i = 0; i < agreement->config.size; i++) {
		if (agreement_is_asked(agreement, i) && !agreement->places[i].has_accepted)
			return;
		votes += agreement->places[i].has_accepted;
	}
	/* Too few to decide what was accepted before: others may have, or may yet. We do not go on, whatever they do. */
	if (!is_quorum(agreement, votes))
		agreement->accepted.flags |= VERDICT_NO_QUORUM;
	decide(agreement);
}
