/*
 * context_events.h - what the steward tells a context, and what the context makes of it.
 */
#ifndef RUNTIME_CONTEXT_EVENTS_H
#define RUNTIME_CONTEXT_EVENTS_H

#include "runtime/context.h"

extern const struct steward_events context_events;

#endif
