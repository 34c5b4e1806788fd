/*
 * progress_state.h - functions that the files of this folder share. Private to them.
 */
#ifndef NODE_PROGRESS_PROGRESS_STATE_H
#define NODE_PROGRESS_PROGRESS_STATE_H

#include "node/progress/progress.h"

#define PROGRESS_SLEEP_MOST NS_PER_S

/* ---- progress.c; set->lock is held ---- */

/* Removes all commands; the caller takes them without the lock. */
struct list progress_cmds_fetch(struct progress *progress);
static inline bool needs_driving(const struct progress *progress)
{
	return progress->cmds.first || progress->unfinished > 0;
}
static inline bool is_free(const struct progress *progress)
{
	return !progress->is_held && atomic_load(&progress->wanting) == 0;
}
void progress_give_up(struct progress *progress);

/* ---- progress.c; the token is held ---- */

void progress_cmds_take(struct progress *progress, struct list cmds);
void progress_cmds_fetch_and_take(struct progress *progress);
/* Reports streams that have failed, then calls that have ended. */
void progress_settle(struct progress *progress);

/* ---- drive.c ---- */

/* Drives until done(), until another thread wants the token, until the lane has no work, or until_ns. */
void progress_drive(struct progress *progress, bool (*done)(void *), void *argument, uint64_t until_ns, bool is_caller);
void *progress_lane_main(void *progress);
/* Moves data of all transports; looks: polls the kernel for events, too. */
unsigned progress_ports_move(struct progress *progress, bool looks);
/* Work that peers may wait for: calls, and chunks that a replaced connection has to send again. */
uint32_t progress_lane_owes(const struct progress *progress);

#endif
