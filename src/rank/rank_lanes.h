/*
 * rank_lanes.h - the lanes of a rank: which transports reach which peers, and what becomes of the events of progress.
 */
#ifndef RANK_RANK_LANES_H
#define RANK_RANK_LANES_H

#include "rank/state.h"

/* As many as every rank has cores for, on whatever host it is: all ranks come to the same number. */
uint32_t rank_lanes_choose(const struct roster *roster);
/* Opens rank->progress with a port for shared memory and one for TCP, as the peers need. For rank_open(). */
ESP_CHECKED enum esp_status rank_lanes_open(struct rank *rank, struct failure *failure);
/* The descriptor by which ranks of this host wake a lane; -1: no rank shares memory with this one. */
int rank_lanes_shm_fd(const struct rank *rank, uint32_t lane);

#endif
