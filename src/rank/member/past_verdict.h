/*
 * past_verdict.h - agreements about groups that were freed, for members that come late. No I/O; any thread.
 *
 * Groups are told apart by channel and first rank. The latest ones are kept.
 */
#ifndef RANK_MEMBER_PAST_VERDICT_H
#define RANK_MEMBER_PAST_VERDICT_H

#include "rank/comm/comm.h"
#include "rank/member/agreement.h"

/* The group is about to be freed, and its agreement is decided. Without memory nothing is kept. */
void past_verdict_keep(const struct comm *group, const struct agreement *agreement);
/*
 * The decision about a group of this name and size, as a message in *out_bytes, which is the caller's to free. Returns
 * its length; 0: nothing is known.
 */
size_t past_verdict_find(struct rank *context, uint32_t channel, uint32_t first, uint32_t size, uint8_t **out_bytes);
/* With context->lock held: a group of that name is opened, and verdicts about earlier ones are not about it. */
void past_verdict_forget(struct rank *context, uint32_t channel, uint32_t first);
/* When the context is closed. */
void past_verdict_forget_all(struct rank *context);

#endif
