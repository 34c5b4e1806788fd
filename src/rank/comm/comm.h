/*
 * comm.h - a communicator: some ranks of the job in some order, with a stream on each lane, a small path, a count of
 * calls.
 *
 * Calls of a group are numbered in the order in which they are made. Each then waits in one of two queues until it is
 * its turn: that of the lanes, where a call waits only for its gate and for those before it, and that of the small
 * path, where one call at a time is under way.
 *
 * The lock is held for moments, never while a peer is waited for. A thread that waits at the small path holds the small
 * path instead, by small.is_held, which is set under the lock: other threads leave their small calls in the queue
 * then, and go on with all else.
 */
#ifndef RANK_COMM_COMM_H
#define RANK_COMM_COMM_H

#include "rank/comm/comm_state.h"

/* Made while the context is opened, or by the functions below; its streams are open then, its small path is not. */
ESP_CHECKED enum esp_status comm_open(struct rank *context, uint16_t channel, const uint32_t *ranks, uint32_t size,
                                       struct comm **out, struct failure *failure);
/*
 * The small path, if the members share this host and their memory is known: small_shm_bytes is then as much as this
 * rank has room for, to be agreed upon with the others. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status comm_open_small(struct comm *group);
/*
 * Plans follow the topology of the context from now on, which all members have, or do without if it has none. No call
 * is under way. False: no memory.
 */
bool comm_use_site(struct comm *group);
/* Collective calls on the parent. *out is NULL if we are not in it. */
ESP_CHECKED enum esp_status comm_split(struct comm *parent, int64_t color, int64_t key, struct comm **out,
                                        struct failure *failure);
ESP_CHECKED enum esp_status comm_create(struct comm *parent, const uint32_t *places, uint32_t count,
                                         struct comm **out, struct failure *failure);
/* A collective call too, unless the group has failed. */
ESP_CHECKED enum esp_status comm_free(struct comm *group, struct failure *failure);
/* Alone: its streams are closed, and it goes. No call is under way. */
void comm_retire(struct comm *group);
/*
 * A channel from this one on that no group here has, or COMM_NO_CHANNEL. keeper: what is kept for this group it may
 * have; NULL: for none.
 */
uint32_t comm_propose_channel(struct rank *context, const struct comm *keeper, uint32_t from);
/*
 * Keeps a channel for members that may be left of this group, until it is released. False: there is none, as the rank
 * has all groups that there can be.
 */
bool comm_keep_channel(struct comm *group);
void comm_release_channel(struct comm *group);
/* Does no group here have this channel? */
bool comm_channel_is_free(struct rank *context, uint32_t channel);
/*
 * For a new group that all members have opened: they agree on the size of its small path, and open that, and on the
 * topology, which some of them may lack if a rank died at a bad moment.
 */
enum esp_status comm_settle(struct comm *group, struct failure *failure);
/* Frees what calls have left behind. No call is under way. */
void comm_drop_left(struct comm *group);
/* Whatever state it is in; no driver runs any more. */
void comm_destroy(struct comm *group);

bool comm_has(const struct comm *group, uint32_t rank);
/* With context->lock held: it is not freed while it has visitors. */
static inline void comm_visit(struct comm *group)
{
	group->visitors++;
}
static inline void comm_depart(struct comm *group)
{
	group->visitors--;
	rank_changed(group->context);
}

/* Under the group's lock: the number of the next call. */
static inline uint64_t comm_number(struct comm *group)
{
	if (group->is_aside)
		return 0;
	uint64_t number = atomic_load_explicit(&group->calls, memory_order_relaxed) + 1;

	atomic_store_explicit(&group->calls, number, memory_order_relaxed);
	return number;
}

/* ---- calls ---- */

/* Goes with every message of a call: what the call is, and whose. */
static inline uint32_t comm_digest(const struct comm *group, const struct call_note *note)
{
	return call_note_digest(note) ^ group->mark;
}
/* How many were started here. */
uint64_t comm_calls(struct comm *group);
/*
 * For calls of the library itself before the first one of the program, by all members, between two of these: they all
 * have number 0, and the program's are counted from 1 all the same. No call is under way at either.
 */
void comm_begin_aside(struct comm *group);
void comm_end_aside(struct comm *group);
/* May a call be made? call: the next one, under the group's lock unless it has a key; or NULL. */
enum esp_status comm_check(struct comm *group, const struct call *call, struct failure *failure);
/* Runs a checked call and waits for it: what the collective functions do. */
enum esp_status comm_run(struct comm *group, const struct call *call, const struct work_options *options,
                          struct failure *failure);
/* Does a caller wait in a call of this group, or has a call not ended? */
bool comm_is_busy(struct comm *group);
/* Rounds that this call takes on the small path, the same on all ranks; 0: it does not go there. */
unsigned comm_small_rounds(const struct comm *group, const struct call *call);
/* Under the group's lock: the work is the next of its kind. */
void comm_queue(struct comm *group, struct work *work, enum drive_by help);
/*
 * Lets the queues go on if they can, unless another thread does so already. True: calls are left that no caller waits
 * for.
 */
bool comm_turn(struct comm *group);
/* comm_turn(), and lane 0's thread looks after the calls that are left. The group is visited. */
void comm_go_on(struct comm *group);
/* For work on the small path: comm_turn(), unless it has ended. */
void comm_small_turn(struct work *work);
/* Goes on with the small path until the work is done or it is time. */
void comm_small_wait(struct work *work, uint64_t until_ns);

/* ---- failure ---- */

/* With context->lock held: a call has ended badly. */
void comm_note_failed(struct comm *group, const struct call_note *note);
/*
 * Without the lock, when no call is under way: calls up to *out_all have ended well here, and none beyond *out_some
 * has.
 */
void comm_count_done(struct comm *group, uint64_t *out_all, uint64_t *out_some);

/* Ends all its calls, now and from now on; the first reason counts. tell: the other members must be told. */
void comm_fail(struct comm *group, enum esp_status status, int32_t culprit, const char *why, bool tell);
/* The same, with everything that CONTROL_FAILED says: as it came from another member. */
void comm_fail_as(struct comm *group, const struct control_msg *reason, bool tell);
/*
 * With context->lock held: the rank at fault for the group's failure; -1: none. If calls do not fit it is, of the two
 * ranks that were compared, the one whose call is not as this rank's own: note, if it is that one, else the remembered
 * one.
 */
int32_t comm_culprit(const struct comm *group, const struct call_note *note);
/* A rank has left that calls of the group wait for. */
void comm_fail_by_leave(struct comm *group, uint32_t rank);
/* With context->lock held: has it left so long ago that what it sent before must have arrived? */
bool rank_has_left(const struct rank *context, uint32_t rank, uint64_t waits_since_ns, uint64_t now);
/* A stream has failed on a lane. */
void comm_stream_failed(struct rank *context, const struct lane_failure *failure);
/* With context->lock held: why a call of the group has failed. */
void comm_explain(struct comm *group, const struct call_note *note, enum esp_status status, struct failure *out);
/* Two ranks have made calls that do not fit. */
void comm_mismatch(struct comm *group, uint32_t one, const struct call_note *ones, uint32_t other,
                    const struct call_note *others);
/* Does a lane that fails with this status know only half of it? */
static inline bool comm_is_suspicion(enum esp_status status)
{
	return status == ESP_EMISMATCH || status == ESP_EPEER || status == ESP_ELINK;
}
/* How work that failed on a lane has failed: as its group has, if that is known. */
static inline enum esp_status comm_status(const struct comm *group, enum esp_status status)
{
	enum esp_status failed = (enum esp_status)atomic_load_explicit(&group->fail.status, memory_order_acquire);

	return status != ESP_OK && failed != ESP_OK ? failed : status;
}
/*
 * A member shrinks it, which is told by all that have failed it for that: a member that has not knows the cause of the
 * failure, and that news is under way to us too.
 */
void comm_shrinks(struct comm *group, uint32_t rank);
/* If nothing more was heard in time, it fails for what was. Returns when to look again. The control thread alone. */
uint64_t comm_look_for_verdict(struct comm *group, uint64_t now_ns);
/* Nothing more was heard. */
void comm_pass_verdict(struct comm *group);
/* The work has ended with such a status: true: it is to wait for the whole story. */
bool comm_awaits_verdict(struct comm *group, struct work *work);

/* With context->lock held. */
struct comm *comm_find(struct rank *context, uint32_t channel, uint32_t first_rank);
void comm_remember(struct comm *group, const struct call_note *note);

/* A member asks about a call, which it has made as the message says. */
void comm_asked(struct rank *context, uint32_t from, const struct control_msg *msg);
/* The last call that was made here, of those that are numbered; sequence 0: none. No call is being made. */
void comm_last_call(struct comm *group, struct call_note *out);
/* The same of another rank, which has left: if it is another one than ours of that number, the group has failed. */
void comm_heard_last_call(struct comm *group, uint32_t rank, const struct call_note *note);
/* CONTROL_ABSENT. The same message to all that ask within a second, so that it is passed on once. */
void comm_say_absent(struct comm *group, uint32_t absent, const struct call_note *note);
void comm_heard_absent(struct rank *context, const struct control_msg *msg);
/*
 * Another member that was heard not to have made this call, or one before it that has not ended here, a moment ago;
 * NO_RANK: none. context->lock is held.
 */
uint32_t comm_absent(const struct comm *group, const struct call_note *note, uint64_t now);
/* The call has ended well, so all had made it. context->lock is held. */
static inline void comm_forget_absence(struct comm *group, const struct call_note *note)
{
	if ((note->flags & CALL_KEYED) == 0 && group->fail.absent.sequence <= note->sequence)
		group->fail.absent = (struct absence){0};
}
/* Asks the member that is waited for (NO_RANK: not known), and one of the others: the one whose turn it is. */
void comm_ask(struct comm *group, uint32_t waits_for, uint32_t turn, const struct call_note *note);
/*
 * How long a call waits before members are asked: waiting ranks notice at last that others, which do not wait, have
 * made another call. Early enough for calls that have little time.
 */
static inline uint64_t comm_ask_after(const struct comm *group, uint64_t patience_ns)
{
	uint64_t usual = rank_patience_ns(group->context) / 5;

	return patience_ns / 4 < usual ? patience_ns / 4 : usual;
}

#endif
