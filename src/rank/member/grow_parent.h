/*
 * grow_parent.h - a context that is opened grows out of a group of another one, and does not come about if that fails.
 */
#ifndef RANK_MEMBER_GROW_PARENT_H
#define RANK_MEMBER_GROW_PARENT_H

#include "rank/state.h"

/*
 * The group out of which a context grows. If it fails, or a member cannot open the context, or a joiner that a member
 * has let in goes away, opening it fails at once on all members; and if all is well, it is to be entered: rank_enter().
 */
struct grow_parent {
	struct comm *group;
	uint64_t number; /* of the call by which it grows                            */
	uint32_t lost;   /* of the group, before joiners were let in */
};

/*
 * For struct join_config: of a struct grow_parent. *out_culprit is by its place in the group, which is its rank in the
 * new job.
 */
bool grow_parent_has_failed(void *parent, int32_t *out_culprit, struct error *why);
/* From now on the parent of this context may fail, or be freed. */
void rank_forget_grow_parent(struct rank *context);
/*
 * With the lock of the group's context held: a member says that the group does not grow. The first message counts, of
 * the last turn.
 */
void grow_parent_hear_off(struct comm *group, const struct control_msg *off);
/*
 * Joiners that the group of this channel has let in at this rank's join address are gone. For the events of the
 * control.
 */
void grow_parent_joiners_lost(void *argument, uint32_t channel, uint32_t count, const char *why);
/* How many, so far. */
uint32_t grow_parent_lost(struct comm *group);
/*
 * This member has not opened the context, as *failure says, whose rank is by place in the group. Unless all know
 * already why the group does not grow, they are told.
 */
void grow_parent_call_off(const struct grow_parent *parent, const struct failure *failure);
/* For the control thread: has the parent failed? Then so does opening. Returns when to look again. */
uint64_t rank_check_grow_parent(struct rank *context, uint64_t now_ns);

/* The last barrier of all ranks of a job that grows: ESP_OK: all of them know that they are in. See grow_vote.h. */
ESP_CHECKED enum esp_status rank_enter(struct rank *rank, uint64_t patience_ns, struct failure *failure);

#endif
