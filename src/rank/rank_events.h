/*
 * rank_events.h - what the steward tells a context, and what the context makes of it.
 */
#ifndef RANK_RANK_EVENTS_H
#define RANK_RANK_EVENTS_H

#include "rank/rank.h"

extern const struct steward_events context_events;

#endif
