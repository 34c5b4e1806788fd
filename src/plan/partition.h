/*
 * partition.h - spreads items over bins so that the fullest bin is nearly as small as it can be.
 *
 * Longest processing time first (Graham 1969): with equal bins the fullest one holds at
 * most 4/3 - 1/(3 bins) times the optimum. Used to spread chunks over lanes, links and
 * hubs. Pure and deterministic: every rank that is given the same sizes computes the
 * same answer.
 */
#ifndef PLAN_PARTITION_H
#define PLAN_PARTITION_H

#include <stdint.h>

#include "base/error.h"

/*
 * Writes the bin of each of the count items to out_bin[0 .. count-1].
 *
 * Items are taken largest first (equal sizes in index order), each into the bin whose
 * (load + size) / weight is least, ties to the lowest bin. weights: the relative speed of
 * each bin, borrowed; NULL means that all are equal; a bin of weight 0 gets nothing.
 *
 * O(count log count + count log bins) with equal weights, O(count bins) with others.
 * ESP_EINVAL: no bins, or every weight is 0. ESP_ELIMIT: the sizes sum to 2^64 or more.
 * ESP_ENOMEM. On failure out_bin is untouched.
 */
ESP_CHECKED enum esp_status plan_partition_lpt(const uint64_t *sizes, uint64_t count, const uint64_t *weights,
                                               uint32_t bins, uint32_t *out_bin);

#endif
