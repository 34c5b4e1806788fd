/*
 * grow_time.h - the deadline of a call by which a group grows, and how its parts share it. Pure.
 *
 *     begins                                                        ends
 *       | others come |      all join       | vote | entry | agree |
 *
 * The last three are short if nothing happens. So that there is time for them if something does, all have to have
 * joined some time before the end; what a part does not need is left to the next ones. A part that begins when its time
 * is over has a little all the same, to hear what others have to say of that.
 */
#ifndef RANK_MEMBER_GROW_TIME_H
#define RANK_MEMBER_GROW_TIME_H

#include <stdint.h>

struct grow_time {
	uint64_t whole_ns; /* how long it takes at the most; 0: that is not known before all have come */
	uint64_t end_ns;   /* absolute                                                              */
	uint64_t interval_ns;
};

enum grow_part {
	GROW_JOIN,  /* to open the new context                               */
	GROW_VOTE,  /* until all members know whether all could              */
	GROW_ENTER, /* until all have met in it                              */
	GROW_AGREE, /* on the outcome, among the members that are left */
};

/* deadline_ns: of the whole call, or 0. interval_ns: of liveness. */
void grow_time_begin(struct grow_time *time, int64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns);
/*
 * How long others may take until they have come, for struct work_options: 0, as long as for any call, if the call has
 * no deadline.
 */
int64_t grow_time_to_come(const struct grow_time *time, uint64_t now_ns);
/*
 * For joiners at the join address to answer: so long, or a part of the deadline, so that one that is stopped does not
 * cost all of it.
 */
uint64_t grow_time_to_count(const struct grow_time *time, uint64_t usual_ns, uint64_t now_ns);
/* All have come. Without a deadline of its own, the call takes so long from now on. */
void grow_time_all_here(struct grow_time *time, uint64_t join_ns, uint64_t now_ns);
/* For this part, from now on; never 0. */
uint64_t grow_time_left(const struct grow_time *time, enum grow_part part, uint64_t now_ns);
/* By how much the whole call is longer than its deadline at the most. */
uint64_t grow_time_slack(const struct grow_time *time);

#endif
