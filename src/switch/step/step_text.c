#include "switch/step/step_text.h"

#include <assert.h>

static const struct {
	const char *name, *rule;
} texts[STEP_EVENTS] = {
	[STEP_BYPASSED] = {"bypassed", "S1"},
	[STEP_NOT_CHILD] = {"not a child", "S1"},
	[STEP_TOO_LONG] = {"too long", "S1"},
	[STEP_ALONE] = {"alone", "S2"},
	[STEP_RESEND_UNKNOWN] = {"resend unknown", "S2"},
	[STEP_CLAIMED] = {"claimed", "S2"},
	[STEP_RECLAIMED] = {"reclaimed", "S3"},
	[STEP_COLLIDED] = {"collided", "S3"},
	[STEP_REPEATED] = {"repeated", "S4"},
	[STEP_ADDED] = {"added", "S4"},
	[STEP_COMPLETED] = {"completed", "S4"},
	[STEP_RELEASED] = {"released", "S5"},
	[STEP_RELEASED_ADDED] = {"released, added", "S5"},
	[STEP_RESULT_FREED] = {"result, slot freed", "S6"},
	[STEP_RESULT_PASSED] = {"result", "S6"},
	[STEP_NOT_MINE] = {"not mine", ""},
};

const char *step_event_name(enum step_event event)
{
	assert((unsigned)event < STEP_EVENTS);
	return texts[event].name;
}

const char *step_event_rule(enum step_event event)
{
	assert((unsigned)event < STEP_EVENTS);
	return texts[event].rule;
}
