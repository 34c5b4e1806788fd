/*
 * grow_vote.h - all members of a group that grows come to one outcome, whichever of them die meanwhile.
 *
 * Each member opens the new context, or cannot, and then they vote:
 *
 *     opens ---- the vote: all could ----> counted ---- the entry ----> in
 *       |                                     |
 *       | a vote against,                     | the entry fails
 *       | or the vote fails                   v
 *       +--------------> out <---- the other members agree ----> in
 *
 * The vote is a call on the old group; the entry is one on the new context, with the joiners, made by counted members.
 * So a member that is in knows that all are counted, and one that is not counted knows that none is in. One that is
 * counted and does not get in knows neither. Then the members that are left agree, as if they were to shrink the old
 * group (shrink.h), and what they agree upon has the calls that have ended well on all of them: if the vote is among
 * these all are counted, and so all are in; otherwise all are out. A member that is in already need not be asked, and
 * answers that it has left the old group.
 *
 * After "out" by a death the old group has failed, and is agreed upon already: esp_group_shrink() of it returns at
 * once. After "in" by an agreement the new world has failed, as a rank has died; it is shrunk in turn.
 */
#ifndef RANK_MEMBER_GROW_VOTE_H
#define RANK_MEMBER_GROW_VOTE_H

#include "rank/comm/comm.h"
#include "rank/member/grow_parent.h"
#include "rank/member/grow_time.h"

/*
 * By all members. grown: the new context; or NULL, and *failure says why there is none. ESP_OK: all have it, or will
 * have found that its world has failed. Otherwise no member has it: it is closed here too, and *failure, in numbers of
 * the old job, is for the caller.
 */
ESP_CHECKED enum esp_status grow_end(const struct grow_parent *parent, struct rank *grown, const struct grow_time *time,
                                     struct failure *failure);

/*
 * After an agreement: lost is the member that is lost, by rank in the old job, or -1. A member that first hears from
 * another one that the group does not grow hears that, and not which rank has died; it is to name the same rank as the
 * others.
 */
void grow_end_name_lost(struct failure *failure, int32_t lost);

#endif
