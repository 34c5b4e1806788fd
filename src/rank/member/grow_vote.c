#include "rank/member/grow_vote.h"

#include <stdlib.h>

#include "base/clip.h"
#include "rank/member/shrink.h"
#include "rank/rank.h"
#include "rank/member/grow_parent.h"

/* How one member has fared. */
struct vote {
	int64_t status;
	int64_t culprit; /* by rank in the old job, or -1 */
	/* it lacks something itself, or a joiner that it has let in is gone; others miss only this member then */
	uint64_t is_cause;
	char text[CONTROL_TEXT];
};

/* The first ranks of the new job are the members, in their order; joiners have no number in the old one. */
static int32_t rank_before(const struct comm *group, int32_t rank)
{
	return rank >= 0 && (uint32_t)rank < group->size ? (int32_t)group->ranks[rank] : -1;
}

/* As the vote is counted: the first one against, of the members that know best. */
static enum esp_status count(const struct vote *votes, uint32_t size, struct failure *failure)
{
	const struct vote *against = NULL;

	for (uint32_t i = 0; i < size; i++) {
		if (votes[i].status != ESP_OK && (!against || (votes[i].is_cause && !against->is_cause)))
			against = &votes[i];
	}
	if (!against)
		return ESP_OK;
	return rank_failure_set(failure, (enum esp_status)against->status, (int32_t)against->culprit, "%.*s",
	                        (int)CONTROL_TEXT - 1, against->text);
}

static enum esp_status hold_vote(struct comm *group, const struct vote *mine, struct vote *all,
                                 const struct grow_time *time, struct failure *failure)
{
	struct call call = {
		.collective = PLAN_ALLGATHER,
		.type = ESP_BYTES,
		.count = sizeof(*mine),
		.in = mine,
		.out = all,
		.makes_group = true,
	};
	/* Others may still be about to join. */
	struct work_options options = {.deadline_ns = (int64_t)grow_time_left(time, GROW_VOTE, clock_now_ns())};
	enum esp_status status = call_check(&call, group->rank, group->size, failure);

	return status == ESP_OK ? comm_run(group, &call, &options, failure) : status;
}

/* The others of the new context hear why, joiners above all. */
static void call_off(struct rank *grown, const struct failure *failure)
{
	char why[CONTROL_TEXT];

	if (!grown)
		return;
	rank_forget_grow_parent(grown);
	clip(why, sizeof(why), "the job lets no ranks in now: %s", failure->text);
	comm_fail(grown->entry, ESP_EABORTED, -1, why, true);
	comm_fail(grown->world, ESP_EABORTED, -1, why, true);
	(void)rank_close(grown, &(struct failure){0}); /* it has failed, as its members know */
}

/* Why the old group has failed: the same on all members, but for the words. */
static enum esp_status reason_of(struct comm *group, struct failure *failure)
{
	struct call_note none = {0};

	pthread_mutex_lock(&group->context->lock);
	enum esp_status status = rank_failure_set(failure, (enum esp_status)atomic_load(&group->fail.status),
	                                          comm_culprit(group, &none), "%s", group->fail.reason.failed.text);
	pthread_mutex_unlock(&group->context->lock);
	return status;
}

/*
 * Of the old group, which has failed or fails now, for that reason. ESP_OK: calls up to *out_everywhere have ended well
 * on all members that are left; *out_lost is a member that is lost, or -1.
 */
static enum esp_status agree(struct comm *group, const struct failure *why, const struct grow_time *time,
                             uint64_t *out_everywhere, int32_t *out_lost, struct failure *failure)
{
	uint32_t first = 0;
	struct shrink_report report = {.lost = &first, .lost_room = 1};
	char text[CONTROL_TEXT];

	clip(text, sizeof(text), "%s", why->text);
	if (atomic_load(&group->fail.status) == ESP_OK)
		comm_fail(group, why->status, why->rank, text, true);
	enum esp_status status =
		comm_agree(group, (int64_t)grow_time_left(time, GROW_AGREE, clock_now_ns()), &report, failure);
	*out_everywhere = status == ESP_OK ? report.completed_everywhere : 0;
	*out_lost = status == ESP_OK && report.lost_count > 0 ? (int32_t)group->ranks[first] : -1;
	return status;
}

void grow_end_name_lost(struct failure *failure, int32_t lost)
{
	const struct failure before = *failure;

	if (lost >= 0 && before.rank < 0 && before.status == ESP_EABORTED)
		rank_failure_set(failure, ESP_EPEER, lost, "rank %d is lost: %s", lost, before.text);
}

static void mark_grown(struct comm *group, struct rank *grown)
{
	rank_forget_grow_parent(grown);
	pthread_mutex_lock(&group->context->lock);
	group->change.has_grown = true;
	pthread_mutex_unlock(&group->context->lock);
}

/* We are counted, and the entry has failed. */
static enum esp_status settle(struct comm *group, struct rank *grown, uint64_t vote, const struct grow_time *time,
                             struct failure *failure)
{
	uint64_t everywhere;
	int32_t lost;
	struct failure why = *failure;
	enum esp_status status = agree(group, &why, time, &everywhere, &lost, failure);

	if (status == ESP_OK && everywhere >= vote) {
		mark_grown(group, grown);
		return ESP_OK;
	}
	if (status == ESP_OK) {
		(void)reason_of(group, failure);
		grow_end_name_lost(failure, lost);
	}
	call_off(grown, failure);
	return failure->status;
}

/* We are not counted, so no member is in: counted members shall not wait until the caller shrinks the group. */
static enum esp_status give_up(struct comm *group, struct rank *grown, const struct grow_time *time,
                               struct failure *failure)
{
	uint64_t everywhere;
	int32_t lost;
	struct failure unused;

	if (atomic_load(&group->fail.status) != ESP_OK)
		(void)reason_of(group, failure);
	call_off(grown, failure);
	/* If it does not come about, the caller is told when it shrinks. */
	if (agree(group, failure, time, &everywhere, &lost, &unused) == ESP_OK)
		grow_end_name_lost(failure, lost);
	return failure->status;
}

/*
 * True: this process lacks something. To this process that is no rank's fault, but to the others it is this member's:
 * they have to be told so.
 */
static bool name_self(const struct comm *group, struct failure *failure)
{
	enum esp_status status = failure->status;
	bool is_lack = status == ESP_ELINK || status == ESP_ENOMEM || status == ESP_ELIMIT || status == ESP_EIO ||
	               status == ESP_EINVAL;
	const struct failure before = *failure;
	char who[RANK_TEXT];

	if (failure->rank >= 0 || !is_lack)
		return false;
	rank_failure_set(failure, status, (int32_t)group->rank, "%s cannot join anew: %s",
	                 rank_text(group->context, group->context->rank, who), before.text);
	return true;
}

/* Joiners are named by their new numbers, which others may have in the old job. */
static void name_joiner(const struct comm *group, struct failure *failure)
{
	const struct failure before = *failure;

	if (failure->rank >= 0 && (uint32_t)failure->rank >= group->size)
		rank_failure_set(failure, before.status, before.rank, "the newcomer that was to become rank %d: %s",
		                 before.rank, before.text);
}

/* This member has not opened the new context: the others shall not wait for it until their time to join is over. */
static struct vote vote_against(const struct grow_parent *parent, struct failure *failure)
{
	bool is_own = name_self(parent->group, failure);

	name_joiner(parent->group, failure);
	struct vote vote = {
		.status = failure->status,
		.culprit = rank_before(parent->group, failure->rank),
		.is_cause = is_own || grow_parent_lost(parent->group) != parent->lost,
	};

	clip(vote.text, sizeof(vote.text), "%s", failure->text);
	grow_parent_call_off(parent, failure);
	return vote;
}

enum esp_status grow_end(const struct grow_parent *parent, struct rank *grown, const struct grow_time *time,
                         struct failure *failure)
{
	struct comm *group = parent->group;
	struct vote mine = grown ? (struct vote){.status = ESP_OK, .culprit = -1} : vote_against(parent, failure);
	struct vote *all = calloc(group->size, sizeof(*all));
	uint64_t number = comm_calls(group) + 1;
	struct failure voting = FAILURE_NONE;

	enum esp_status status = all ? hold_vote(group, &mine, all, time, &voting)
	                             : rank_failure_set(&voting, ESP_ENOMEM, -1, "no memory to let newcomers in");
	bool is_counted = all && status == ESP_OK;
	if (is_counted)
		status = count(all, group->size, &voting);
	free(all);
	if (status == ESP_OK) {
		status = rank_enter(grown, grow_time_left(time, GROW_ENTER, clock_now_ns()), &voting);
		name_joiner(group, &voting);
		voting.rank = rank_before(group, voting.rank);
		*failure = voting;
		if (status == ESP_OK)
			mark_grown(group, grown);
		return status == ESP_OK ? ESP_OK : settle(group, grown, number, time, failure);
	}
	*failure = voting;
	if (!is_counted)
		return give_up(group, grown, time, failure);
	call_off(grown, failure); /* all know of the vote against */
	return status;
}
