/*
 * membership.h - how a rank acts on the fates of others: presence.h, driven by the control thread.
 *
 * A rank that dies, leaves or falls silent is noted in context->fates.of, for all threads; every group that it is a
 * member of fails, unless it has left in good order. If this rank itself is given up by others, all its groups fail.
 */
#ifndef RANK_MEMBER_MEMBERSHIP_H
#define RANK_MEMBER_MEMBERSHIP_H

#include "rank/state.h"

/* Before the control opens; once our own connections stand. */
ESP_CHECKED enum esp_status membership_open(struct rank *context, struct failure *failure);
ESP_CHECKED enum esp_status membership_begin(struct rank *context, struct failure *failure);
/* Tells all that we leave in good order, the first time; why: static, as of presence_leave(). */
void membership_leave(struct rank *context, const char *why);
/* We give up joining because of that rank (-1: of none): the others shall know, before we leave. */
void membership_blame(struct rank *context, int32_t rank, const char *why);
/* Tells all that the process ends without that; returns when it was said, or after a moment. */
void membership_exit(struct rank *context);

/* Its data does not reach us any more, although it is there: it is accused of that, unless more is known of it. */
void membership_part(struct rank *context, uint32_t peer);

/*
 * For the control thread: has anything come from this rank within the interval, on any connection? Then it is there.
 */
bool membership_hears(struct rank *context, uint32_t peer);

/* For the control thread: its events. */
void membership_opened(void *argument, uint32_t peer, bool dialled);
bool membership_doubts(void *argument, uint32_t peer);
void membership_closed(void *argument, uint32_t peer, const struct error *why);
void membership_unreachable(struct rank *context, uint32_t peer, const struct error *why);
void membership_subscribe(struct control_subscribers *out);
bool membership_passes_on(void *context, uint32_t peer);
uint64_t membership_turn(struct rank *context, uint64_t now_ns);

#endif
