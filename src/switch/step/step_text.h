/*
 * step_text.h - names of events, for counters and traces; not for BPF.
 */
#ifndef SWITCH_STEP_STEP_TEXT_H
#define SWITCH_STEP_STEP_TEXT_H

#include "switch/step/step.h"

/* "claimed", "collided" ... Never NULL for a value below STEP_EVENTS. */
const char *step_event_name(enum step_event event);
/* "S1" to "S6"; "" for STEP_NOT_MINE. */
const char *step_event_rule(enum step_event event);

#endif
