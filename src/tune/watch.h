/*
 * watch.h - has the network changed so much that masters should be dealt anew?
 *
 * Looks at one number per window, the time that a byte took, and at the rate of every node. A change of a fifth in
 * either direction counts: a host that recovers makes steps shorter, or only gains a rate that is not used yet. It
 * counts when it lasts for two windows, so that one bad window is none. After every change of masters one window is not
 * looked at, as it ran by the plan before (the measurements of a window are exchanged during the next one), and the one
 * behind it is the new reference. Changes that come soon after each other make the watch slower, up to a limit; quiet
 * makes it quick again. Pure.
 */
#ifndef TUNE_WATCH_H
#define TUNE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define TUNE_TRIGGER_PERCENT 20u
#define TUNE_CONFIRM 2u     /* windows in a row                            */
#define TUNE_PAUSE_MOST 32u /* windows between two triggers, at the most   */

enum tune_verdict {
	TUNE_SETTLING, /* right after a change: nothing is known yet */
	TUNE_STEADY,
	TUNE_DOUBT,    /* something has changed, in this window      */
	TUNE_PAUSED,   /* the same, so soon after the last trigger that nothing is made of it */
	TUNE_SLOWER,   /* it has lasted: steps take longer           */
	TUNE_FASTER,   /* they take less                             */
	TUNE_SHIFTED,  /* they take as long, but nodes' rates have changed */
};

struct tune_watch {
	uint64_t reference;  /* time of 2^20 bytes in ns; 0: to be learnt  */
	uint32_t skip;       /* windows that are not looked at             */
	uint32_t doubts;     /* windows in a row                           */
	enum tune_verdict doubt; /* of what kind                           */
	uint32_t pause;      /* windows that must lie between two triggers */
	uint32_t since;      /* windows since the last one                 */
};

void tune_watch_init(struct tune_watch *watch);
/* A window: what 2^20 bytes took; shifted: a node's rate is not what masters were dealt by. */
enum tune_verdict tune_watch_step(struct tune_watch *watch, uint64_t cost, bool shifted);
/* Masters have been changed: the next window is one of the plan before, the one behind it the new reference. */
void tune_watch_changed(struct tune_watch *watch);
/* Nothing can be done about it: the next window is the new reference. */
void tune_watch_accept(struct tune_watch *watch);

#endif
