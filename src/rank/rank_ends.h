/*
 * rank_ends.h - the two ends of a context's life: connecting to the others, and leaving them.
 */
#ifndef RANK_RANK_ENDS_H
#define RANK_RANK_ENDS_H

#include "rank/state.h"

/* Connects to the ranks of this host, and to the neighbours that pass messages on. */
ESP_CHECKED enum esp_status rank_meet(struct rank *context, struct failure *failure);

/*
 * With the lock held, while opening: nothing listens where this one should, and we do not know whether rank 0 is there.
 * A rank that has not got all node infos from rank 0 when that died gives up, and can be reached no more than one that
 * has died itself: rank 0 is checked before the other is named.
 */
bool rank_doubts_culprit(const struct rank *context);

/* Ends what is unfinished, here only: ESP_EABORTED. */
void rank_end_work(struct rank *context);

/*
 * While opening, which has failed: how long to wait for the others to hear why. Some may never leave, and the deadline
 * holds for us, too.
 */
uint64_t rank_farewell_ns(const struct rank *context, uint64_t now_ns);

/* Is there a group that works, and so other ranks that may need data that we have sent? */
bool rank_is_needed(struct rank *context);
/* Says goodbye and waits until all have, or for so long. */
void rank_leave(struct rank *context, uint64_t patience_ns);
/*
 * After that: has the world failed because its last calls did not fit, and has no caller heard of it? ESP_EMISMATCH
 * then.
 */
enum esp_status rank_tell_last_calls(struct rank *context, struct failure *failure);

#endif
