/*
 * choose_grouping.h - which of several groupings of the same nodes to believe. Pure.
 */
#ifndef NETWORK_DISCOVER_CHOOSE_GROUPING_H
#define NETWORK_DISCOVER_CHOOSE_GROUPING_H

#include "tune/choose.h"

/*
 * Which of several groupings of the same nodes to believe: that whose fastest plan for an allreduce of so many bytes
 * is the fastest of all. Of groupings that are within a hundredth of each other the one with the fewest groups.
 *
 * On a network that was measured only those run that are more likely than one group (affinity.h), unless none is; and each on the network as it
 * explains it (smooth.h), without what is far beyond all others, so that it is not the luck of single pairs that decides.
 *
 * Where latency alone was measured, plans have no cost: what a byte takes is not known, and to take it in proportion to latency makes small
 * groups look cheap, however little tells them apart. The distances decide then: of the groupings that are more likely than one group
 * (affinity.h) that whose groups have the largest silhouettes, by how many times as far nodes are; of equals the one with the fewest groups, and that also if
 * none is likely.
 *
 * groupings[i][node]: the group, numbered from 0 without gaps. out_seconds: of each; may be NULL.
 */
ESP_CHECKED enum esp_status choose_grouping(const struct tune_network *network, const uint32_t *const *groupings,
                                                 uint32_t count, uint64_t bytes, uint32_t *out_best, double *out_seconds,
                                                 struct error *err);

#endif
