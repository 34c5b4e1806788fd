/*
 * init_barrier.h - the meeting of all ranks that joining ends with. Private to src/rank.
 */
#ifndef RANK_INIT_BARRIER_H
#define RANK_INIT_BARRIER_H

#include "rank/state.h"

/*
 * All ranks are here when it returns. They agree on how fast rails are, if there are several, and have the topology, if
 * rank 0 knows one (placement.h). It is call number 0 of the world.
 */
ESP_CHECKED enum esp_status rank_init_barrier_run(struct rank *context, struct failure *failure);

/*
 * How long a call of it may take: of a context that grows out of another one, until the deadline of joining. Never 0.
 */
uint64_t rank_init_barrier_patience_ns(const struct rank *context);

/*
 * Has it failed because another rank has died, or has shrunk or failed the world already? That rank may have done so
 * when the barrier was over for it and for others, for which joining has ended well; so it has here too, and the first
 * call on the world tells.
 */
bool rank_init_barrier_has_been(struct rank *context);

#endif
