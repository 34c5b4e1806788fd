/*
 * quality.h - the quality of a grouping or a measurement whose truth is known.
 *
 * Pure functions.
 */
#ifndef NETWORK_DISCOVER_QUALITY_H
#define NETWORK_DISCOVER_QUALITY_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"
#include "network/topo/racks.h"

/*
 * Physical affinity inference accuracy, as PLink's section 5.5 defines it: of all triplets (a, b, c) in which a
 * and b share prefixes of different length with c (of region, datacenter, cluster, row, rack), the share in
 * which the one with the longer common prefix is measured strictly nearer to c. A pair {a, b} counts once per
 * observer c. Triplets with an unknown distance are left out, a tie counts as wrong. *out_triplets (may be
 * NULL): number of triplets; without any the result is NAN. Both have the same nodes.
 */
double discover_quality_paia(const struct matrix *measured, const struct racks *truth, uint64_t *out_triplets);

/*
 * Adjusted mutual information of two groupings of the same nodes (Vinh, Epps and Bailey, 2010), normalised by
 * the larger of the two entropies: 1 for equal groupings, about 0 for independent ones, which can be negative.
 * NAN: no memory.
 */
double discover_quality_ami(const struct grouping *a, const struct grouping *b);

#endif
