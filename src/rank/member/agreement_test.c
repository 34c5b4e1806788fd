/*
 * agreement_test.c - the rules that keep verdicts the same, one by one. Whole groups in virtual time are in
 * tests/members, where most of these rules stand in for each other: a single one that is missing is seldom noticed
 * there.
 */
#include "rank/member/agreement.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"

enum { SIZE = 5, MAP = (SIZE + 7) / 8, SENT_MOST = 64 };

struct sent {
	uint32_t to;
	struct verdict_msg msg;
	uint8_t bytes[VERDICT_HEAD_BYTES + 4 * MAP];
};

/* One member, and what it has sent. */
struct member {
	struct agreement agreement;
	struct sent sent[SENT_MOST];
	uint32_t count;
	uint64_t now_ns;
};

static void take(void *context, uint32_t place, const uint8_t *bytes, size_t n)
{
	struct member *member = context;
	struct sent *sent = &member->sent[member->count++ % SENT_MOST];

	CHECK(n <= sizeof(sent->bytes));
	memcpy(sent->bytes, bytes, n);
	sent->to = place;
	CHECK(verdict_msg_decode(sent->bytes, n, SIZE, &sent->msg));
}

static bool prepare(void *context, const struct verdict_terms *terms, const uint8_t *members, uint32_t *out_channel)
{
	(void)context, (void)terms, (void)members, (void)out_channel;
	return true;
}

static void accuse(void *context, uint32_t place)
{
	(void)context, (void)place;
}

static void begin(struct member *member, uint32_t self)
{
	static const struct agreement_events events = {.send = take, .prepare = prepare, .accuse = accuse};
	struct agreement_config config = {
		.self = self, .size = SIZE, .interval_ns = NS_PER_S, .events = &events, .context = member};

	*member = (struct member){.now_ns = NS_PER_S};
	CHECK(agreement_init(&member->agreement, &config) == ESP_OK);
	agreement_start(&member->agreement, 10, 11, 4, member->now_ns);
}

static uint64_t ballot(uint32_t round, uint32_t attempt)
{
	return (uint64_t)round << 32 | attempt;
}

static void hear(struct member *member, uint32_t from, struct verdict_msg msg)
{
	static const uint8_t none[MAP] = {0};
	uint8_t bytes[VERDICT_HEAD_BYTES + 4 * MAP];

	msg.size = SIZE;
	msg.gone = msg.gone ? msg.gone : none;
	msg.accused = msg.accused ? msg.accused : none;
	msg.behind = msg.behind ? msg.behind : none;
	msg.members = msg.members ? msg.members : none;
	msg.left = msg.left ? msg.left : none;
	size_t n = verdict_msg_encode(&msg, bytes);
	agreement_message(&member->agreement, from, bytes, n, ++member->now_ns);
}

static void hear_short(struct member *member, uint32_t from, enum verdict_type type, uint64_t of)
{
	hear(member, from, (struct verdict_msg){.type = (uint8_t)type, .terms = {.ballot = of, .channel = UINT32_MAX}});
}

static void hear_proposal(struct member *member, uint32_t from, uint64_t of, uint8_t members)
{
	hear(member, from,
	     (struct verdict_msg){.type = VERDICT_PROPOSE, .terms = {.ballot = of, .channel = 8}, .members = &members});
}

/* The last message of the member to `to`. */
static const struct verdict_msg *last_to(const struct member *member, uint32_t to)
{
	CHECK(member->count > 0 && member->count <= SENT_MOST);
	const struct sent *sent = &member->sent[member->count - 1];
	CHECK(sent->to == to);
	return &sent->msg;
}

/* ---- a member ---- */

static void accepts_what_its_leader_proposes(void)
{
	struct member member;

	begin(&member, 3);
	CHECK(last_to(&member, 0)->type == VERDICT_JOIN);
	hear_proposal(&member, 0, ballot(0, 1), 0x1f);
	CHECK(last_to(&member, 0)->type == VERDICT_ACCEPT && member.agreement.accepted.ballot == ballot(0, 1));
	/* An earlier one comes too late; the leader has asked for something else since. */
	hear_proposal(&member, 0, ballot(0, 3), 0x0f);
	hear_proposal(&member, 0, ballot(0, 2), 0x1b);
	CHECK(last_to(&member, 0)->type == VERDICT_REFUSE);
	CHECK(member.agreement.accepted.ballot == ballot(0, 3) && member.agreement.accepted_members[0] == 0x0f);
	agreement_fini(&member.agreement);
}

static void accepts_nothing_of_anybody_else(void)
{
	struct member member;

	begin(&member, 3);
	hear_proposal(&member, 2, ballot(0, 1), 0x1f);
	CHECK(last_to(&member, 2)->type == VERDICT_REFUSE && member.agreement.accepted.ballot == 0);
	agreement_fini(&member.agreement);
}

/* Its vote counts in the new round, where it has said that it has accepted nothing. */
static void accepts_nothing_of_a_round_that_it_has_left(void)
{
	struct member member;

	begin(&member, 3);
	hear_short(&member, 1, VERDICT_CALL, ballot(1, 0));
	CHECK(last_to(&member, 1)->type == VERDICT_JOIN && last_to(&member, 1)->accepted.ballot == 0);
	hear_proposal(&member, 0, ballot(0, 1), 0x1f);
	CHECK(last_to(&member, 0)->type == VERDICT_REFUSE && member.agreement.accepted.ballot == 0);
	hear_proposal(&member, 1, ballot(1, 1), 0x1e);
	CHECK(last_to(&member, 1)->type == VERDICT_ACCEPT);
	agreement_fini(&member.agreement);
	/* Nor of an earlier round of the same leader. */
	begin(&member, 3);
	hear_short(&member, 0, VERDICT_CALL, ballot(SIZE, 0));
	CHECK(last_to(&member, 0)->type == VERDICT_JOIN && member.agreement.round == SIZE);
	hear_proposal(&member, 0, ballot(0, 1), 0x1f);
	CHECK(last_to(&member, 0)->type == VERDICT_REFUSE && member.agreement.accepted.ballot == 0);
	agreement_fini(&member.agreement);
}

static void tells_the_next_leader_what_it_has_accepted(void)
{
	struct member member;

	begin(&member, 3);
	hear_proposal(&member, 0, ballot(0, 1), 0x1b);
	agreement_gone(&member.agreement, 0, ++member.now_ns);
	const struct verdict_msg *join = last_to(&member, 1);
	CHECK(join->type == VERDICT_JOIN && join->accepted.ballot == ballot(0, 1) && join->members[0] == 0x1b);
	agreement_fini(&member.agreement);
}

/* ---- a leader ---- */

/* Member `from` joins round 0, having accepted that; 0: nothing. */
static void hear_join(struct member *member, uint32_t from, uint64_t accepted, uint8_t members)
{
	hear(member, from, (struct verdict_msg){
		.type = VERDICT_JOIN,
		.terms = {.ballot = ballot(5, 0), .channel = 4},
		.accepted = {.ballot = accepted, .channel = 12},
		.members = &members,
	});
}

/* It leads round 5, after round 0 to 4 have come to nothing that it knows of. */
static void begin_to_lead(struct member *member)
{
	begin(member, 0);
	hear_join(member, 1, 0, 0);
	CHECK(member->agreement.round == 5);
}

static void proposes_the_latest_that_was_accepted(void)
{
	static const uint64_t ballots[2][2] = {{(uint64_t)2 << 32 | 1, (uint64_t)3 << 32 | 7},
	                                       {(uint64_t)3 << 32 | 7, (uint64_t)2 << 32 | 1}};
	struct member member;

	for (int order = 0; order < 2; order++) {
		begin_to_lead(&member);
		hear_join(&member, 2, ballots[order][0], ballots[order][0] > ballots[order][1] ? 0x16 : 0x1e);
		hear_join(&member, 3, ballots[order][1], ballots[order][1] > ballots[order][0] ? 0x16 : 0x1e);
		hear_join(&member, 4, 0, 0);
		const struct verdict_msg *proposal = last_to(&member, 4);
		CHECK(proposal->type == VERDICT_PROPOSE && proposal->members[0] == 0x16 && proposal->terms.channel == 12);
		CHECK(proposal->terms.flags & VERDICT_REPEATED);
		agreement_fini(&member.agreement);
	}
}

static void decides_when_all_have_accepted_this_very_proposal(void)
{
	struct member member;

	begin_to_lead(&member);
	for (uint32_t i = 2; i < SIZE; i++)
		hear_join(&member, i, 0, 0);
	CHECK(member.agreement.has_proposed);
	uint64_t first = member.agreement.proposal.ballot;
	agreement_gone(&member.agreement, 4, ++member.now_ns); /* then another is asked for */
	uint64_t second = member.agreement.proposal.ballot;
	CHECK(second > first);
	for (uint32_t i = 1; i < 4; i++)
		hear_short(&member, i, VERDICT_ACCEPT, first);
	CHECK(!member.agreement.is_decided);
	for (uint32_t i = 1; i < 4; i++) {
		CHECK(!member.agreement.is_decided);
		hear_short(&member, i, VERDICT_ACCEPT, second);
	}
	CHECK(member.agreement.is_decided && member.agreement.goes_on && member.agreement.accepted_members[0] == 0x0f);
	agreement_fini(&member.agreement);
}

/*
 * Its terms were accepted before, so no member can be left out of them; but one that is gone is known to stay behind.
 */
static void tells_who_stays_behind(void)
{
	struct member member;

	begin_to_lead(&member);
	for (uint32_t i = 2; i < SIZE; i++)
		hear_join(&member, i, ballot(2, 1), 0x1f);
	agreement_gone(&member.agreement, 4, ++member.now_ns);
	for (uint32_t i = 1; i < 4; i++)
		hear_short(&member, i, VERDICT_ACCEPT, member.agreement.proposal.ballot);
	CHECK(member.agreement.is_decided && agreement_includes(&member.agreement, 4) &&
	      !agreement_keeps(&member.agreement, 4));
	const struct verdict_msg *decided = last_to(&member, 3);
	CHECK(decided->type == VERDICT_DECIDED && decided->members[0] == 0x1f && decided->behind[0] == 0x10);
	agreement_fini(&member.agreement);
}

/* A member that has freed the group is waited for no more, and all are told that it has left only the group. */
static void goes_on_without_who_has_left(void)
{
	struct member member;

	begin_to_lead(&member);
	hear_join(&member, 2, 0, 0);
	hear_join(&member, 3, 0, 0);
	CHECK(!member.agreement.has_proposed && agreement_waits_for(&member.agreement) == 4);
	hear_short(&member, 4, VERDICT_LEFT, 0);
	CHECK(member.agreement.has_proposed);
	for (uint32_t i = 1; i < 4; i++)
		hear_short(&member, i, VERDICT_ACCEPT, member.agreement.proposal.ballot);
	CHECK(member.agreement.is_decided && member.agreement.accepted_members[0] == 0x0f);
	const struct verdict_msg *decided = last_to(&member, 3);
	CHECK(decided->type == VERDICT_DECIDED && decided->left[0] == 0x10);
	agreement_fini(&member.agreement);
}

/* Its leader has left, so it asks the next one, and says why; it does not believe others that it has left itself. */
static void tells_the_next_leader_who_has_left(void)
{
	uint8_t members = 0x1e, left = 0x09;
	struct member member;

	begin(&member, 3);
	hear_short(&member, 0, VERDICT_LEFT, 0);
	const struct verdict_msg *join = last_to(&member, 1);
	CHECK(join->type == VERDICT_JOIN && join->left[0] == 0x01 && join->gone[0] == 0);
	hear_proposal(&member, 1, ballot(1, 1), members);
	hear(&member, 1,
	     (struct verdict_msg){.type = VERDICT_DECIDED,
	                          .terms = {.ballot = ballot(1, 1), .channel = 8},
	                          .members = &members,
	                          .left = &left});
	CHECK(member.agreement.goes_on && agreement_has_left(&member.agreement, 0) &&
	      !agreement_has_left(&member.agreement, 3));
	agreement_fini(&member.agreement);
}

/*
 * Numbers of channels begin anew behind the last one: what was free for others before is not better than that for being
 * higher.
 */
static void proposes_the_channel_that_it_is_told(void)
{
	struct member member;

	begin(&member, 0);
	for (uint32_t i = 1; i < SIZE; i++)
		hear(&member, i,
		     (struct verdict_msg){.type = VERDICT_JOIN,
		                          .terms = {.ballot = ballot(0, 0), .channel = i == 2 ? 65532 : 4}});
	CHECK(last_to(&member, 4)->type == VERDICT_PROPOSE && last_to(&member, 4)->terms.channel == 65532);
	hear(&member, 3,
	     (struct verdict_msg){.type = VERDICT_REFUSE,
	                          .terms = {.ballot = member.agreement.proposal.ballot, .channel = 8}});
	CHECK(last_to(&member, 4)->type == VERDICT_PROPOSE);
	CHECK_U64(last_to(&member, 4)->terms.channel, 8);
	agreement_fini(&member.agreement);
}

int main(void)
{
	accepts_what_its_leader_proposes();
	accepts_nothing_of_anybody_else();
	accepts_nothing_of_a_round_that_it_has_left();
	tells_the_next_leader_what_it_has_accepted();
	proposes_the_latest_that_was_accepted();
	decides_when_all_have_accepted_this_very_proposal();
	tells_who_stays_behind();
	goes_on_without_who_has_left();
	tells_the_next_leader_who_has_left();
	proposes_the_channel_that_it_is_told();
	return 0;
}
