/* rank_events.h - events of the control, and how a rank acts on them. */
#ifndef RANK_RANK_EVENTS_H
#define RANK_RANK_EVENTS_H

#include "rank/state.h"

extern const struct control_events rank_events;

/* Every type of message that a rank takes. */
void rank_subscribe(struct control_subscribers *out);

#endif
