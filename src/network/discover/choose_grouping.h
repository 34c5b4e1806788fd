/*
 * choose_grouping.h - chooses one of several groupings of the same nodes. Pure.
 */
#ifndef NETWORK_DISCOVER_CHOOSE_GROUPING_H
#define NETWORK_DISCOVER_CHOOSE_GROUPING_H

#include "tune/choose.h"

/*
 * The grouping whose fastest plan for an allreduce of `bytes` is the fastest of all. Of groupings that differ
 * by less than a hundredth, the one with the fewest groups.
 *
 * On a measured network only groupings that are more likely than one group compete (affinity.h), unless none
 * is; each on the network as it explains it (smooth.h), with outliers clipped, so that the noise of single
 * pairs does not decide.
 *
 * If only latency was measured, plans have no cost: the time per byte is unknown, and taking it in proportion
 * to the latency would make small groups look cheap. Then the distances decide: of the groupings that are more
 * likely than one group, the one with the largest silhouettes of the logarithms of the distances; of equals the
 * one with the fewest groups, and that one also if none is likely.
 *
 * groupings[i][node]: the group, numbered from 0 without gaps. out_seconds: of each; may be NULL.
 */
ESP_CHECKED enum esp_status discover_choose_grouping(const struct tune_network *network,
                                                     const uint32_t *const *groupings, uint32_t count, uint64_t bytes,
                                                     uint32_t *out_best, double *out_seconds, struct error *err);

#endif
