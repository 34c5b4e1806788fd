/*
 * look_limit.h - how long a thread goes on looking for what must come at any moment, before it rests (idle_wait.h).
 *
 * That pays if it comes within some microseconds. If it does not, time was lost in which others might have run, so who has looked in vain
 * looks in one wait of two from then on, then of four, up to 64, until it comes in time again.
 */
#ifndef RANK_PROGRESS_LOOK_LIMIT_H
#define RANK_PROGRESS_LOOK_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOOK_LIMIT_MOST 20u /* in one wait, each about a microsecond */
#define LOOK_LIMIT_VAIN_MOST 6u

struct look_limit {
	uint32_t now;   /* in this wait; 0: it has not begun           */
	uint32_t waits;
	uint32_t vain;  /* one in 2^vain waits looks                   */
	bool is_idle;   /* in this wait it does not look               */
};

/* Nothing has come yet: true: look again. */
static inline bool look_limit_again(struct look_limit *looks)
{
	if (looks->now == 0 && !looks->is_idle)
		looks->is_idle = looks->waits++ % (UINT32_C(1) << looks->vain) != 0;
	if (looks->is_idle)
		return false;
	if (looks->now++ < LOOK_LIMIT_MOST)
		return true;
	looks->is_idle = true;
	looks->vain += looks->vain < LOOK_LIMIT_VAIN_MOST;
	return false;
}

/* The wait is over, or something has come. */
static inline void look_limit_end(struct look_limit *looks)
{
	if (looks->now > 0 && !looks->is_idle)
		looks->vain = 0;
	looks->now = 0;
	looks->is_idle = false;
}

#endif
