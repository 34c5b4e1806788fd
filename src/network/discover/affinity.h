/*
 * affinity.h - affinity of nodes: how much nearer two nodes are than their own parts explain, and the evidence
 * for a grouping.
 *
 * The model has one number per node and one gap for all groups: p_ij = own_i + own_j, plus the gap if i and j
 * are in different groups. To find groups, the own parts are removed once, by least squares; the residual of a
 * pair is its affinity (positive: nearer than expected). A grouping explains more of the residuals, the more
 * affinity there is inside its groups. It uses all pairs at once, so it is certain even where each single pair
 * is doubtful. Pure.
 */
#ifndef NETWORK_DISCOVER_AFFINITY_H
#define NETWORK_DISCOVER_AFFINITY_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

struct affinity {
	uint32_t nodes;
	const struct matrix *matrix; /* borrowed */
	double known;    /* number of its known pairs, each counted once */
	double *of;      /* nodes * nodes, 0 on the diagonal and where unknown; in the matrix's unit */
	double *own;     /* the own parts that were removed, by node */
	double noise;    /* standard deviation of pairs with one group, and the log-likelihood with it */
	double likelihood;
	bool ways; /* see discover_affinity_init()                      */
};

/*
 * matrix passes matrix_check() and outlives *affinity. ways: for measurements on a network with other traffic.
 * Then every group has a term of its own, its way, and the gap between two groups is the sum of their ways: if
 * other traffic fills the uplink of one rack, all nodes are far from it. And noise is asymmetric: disturbance
 * makes pairs look further, and hardly anything makes them look nearer, so near pairs count more than far ones.
 * A pair at the largest distance may have been clipped there, and be further. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_affinity_init(struct affinity *affinity, const struct matrix *matrix, bool ways,
                                                   struct error *err);
void discover_affinity_fini(struct affinity *affinity); /* accepts a zeroed struct */

struct affinity_verdict {
	double gap;      /* mean additional distance to other groups; 0 for one group */
	double noise;    /* remaining standard deviation of pairs */
	/*
	 * By how much the grouping shortens the description of the measurement, in nats (natural logarithm of
	 * odds), the description of the grouping itself included; 0 for one group, negative: it does not pay.
	 */
	double evidence;
};

/*
 * Fits the model to the grouping, with long-tailed noise (Student's t, 3 degrees of freedom), so that a few
 * disturbed pairs do not decide. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_affinity_judge(const struct affinity *affinity, const struct grouping *grouping,
                                                    struct affinity_verdict *out, struct error *err);

/*
 * The evidence for rivals: groupings in which one node is in another group, or alone. *out_odds: the sum of
 * their odds against this grouping, with the own parts, gaps and noise fitted to it: 0 if every node is
 * certain, above 1 if some nodes are likely to be misplaced; 0 for one group. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_affinity_rivals(const struct affinity *affinity, const struct grouping *grouping,
                                                     double *out_odds, struct error *err);

/*
 * Moves single nodes to other groups, and exchanges pairs, as long as that explains more and no group gets
 * fewer than `least` members. *out_moves (may be NULL): number of moves. The number of groups stays.
 * ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_affinity_polish(const struct affinity *affinity, uint32_t least,
                                                     struct grouping *grouping, uint32_t *out_moves, struct error *err);

#endif
