/*
 * load_replay.h - a load from traces: recorded times of some workers, for any number of workers. Pure.
 */
#ifndef SIM_WORKLOAD_LOAD_REPLAY_H
#define SIM_WORKLOAD_LOAD_REPLAY_H

#include "sim/workload/load.h"
#include "sim/workload/replay.h"

/*
 * Workers that were not recorded have the times of one that was, drawn with the seed (workload_replay_pick()). All
 * workers start their collectives in one order, the mean one: a gradient that a worker has earlier waits for
 * those before it. Errors as for workload_load_init().
 */
ESP_CHECKED enum esp_status workload_load_init_replay(struct load *load, const struct replay *replay, uint32_t workers,
                                                      uint64_t seed, struct error *err);

#endif
