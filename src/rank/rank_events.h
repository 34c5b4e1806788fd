/*
 * rank_events.h - what the control tells a context, and what the context makes of it.
 */
#ifndef RANK_RANK_EVENTS_H
#define RANK_RANK_EVENTS_H

#include "rank/state.h"

extern const struct control_events rank_events;

/* Every type of message that a rank takes. */
void rank_subscribe(struct control_subscribers *out);

#endif
