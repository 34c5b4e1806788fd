/*
 * affinity.h - which nodes are nearer to each other than their own costs explain, and what that says for a grouping.
 *
 * The model behind it has one number for each node and one for all groups: p_ij = own_i + own_j, and gap more if i and j are
 * in different groups. To find groups, the own parts are taken out once, by least squares; what is left of a pair is its affinity (above 0:
 * nearer than expected). A grouping explains the more of what is left, the more affinity there is inside of groups. This
 * looks at all pairs at once, so that it is certain where each single pair is doubtful. Pure.
 */
#ifndef NETWORK_DISCOVER_AFFINITY_H
#define NETWORK_DISCOVER_AFFINITY_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

struct affinity {
	uint32_t nodes;
	const struct matrix *matrix; /* borrowed */
	double known;    /* pairs of it that are known, each counted once */
	double *of;      /* nodes * nodes, 0 on the diagonal and where nothing is known; in the matrix's unit */
	double *own;     /* what was taken out: the nodes' own parts */
	double noise;    /* the deviation of single pairs with one group, and the logarithm of the likelihood with it */
	double likelihood;
	bool ways;       /* see affinity_init()                      */
};

/*
 * matrix passes matrix_check() and outlives it. ways: for what was measured on a network that others use. Every group has a way out of its own then,
 * and the gap between two groups is the sum of their ways: where others fill the uplink of one rack, all is far from it. And noise
 * is not the same in both directions: what is disturbed looks further than it is, and hardly anything looks nearer, so that two nodes that are
 * near each other weigh more than two that are far; what is as far as anything may have been cut off there, and be further. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status affinity_init(struct affinity *affinity, const struct matrix *matrix, bool ways, struct error *err);
void affinity_fini(struct affinity *affinity); /* of zeros: nothing happens */

struct affinity_verdict {
	double gap;      /* how much further other groups are, in the mean; 0 for one group                               */
	double noise;    /* the deviation of single pairs that is left                                                    */
	double evidence; /* how much shorter the description of the measurement becomes by the grouping, in nats (the natural
	                  * logarithm of odds), its own description paid for; 0 for one group, below 0: it is not worth it */
};

/*
 * Fits the model to the grouping anew, with noise that has long tails (Student's, with 3 degrees of freedom), so that a few pairs
 * that were disturbed decide nothing. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status affinity_judge(const struct affinity *affinity, const struct grouping *grouping,
                                           struct affinity_verdict *out, struct error *err);

/*
 * What speaks for other groupings, those in which one node is somewhere else: in another group, or alone. *out_odds: the sum of their odds
 * against this one, by the own parts, gaps and noise that fit this one: 0 if every node is certain, more than 1 if some are likely to be
 * wrong; 0 for one group. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status affinity_rivals(const struct affinity *affinity, const struct grouping *grouping, double *out_odds,
                                            struct error *err);

/*
 * Moves single nodes to other groups, and exchanges two, as long as that explains more and no group gets fewer than least
 * members. *out_moves (may be NULL): how often. The number of groups stays. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status affinity_polish(const struct affinity *affinity, uint32_t least, struct grouping *grouping,
                                            uint32_t *out_moves, struct error *err);

#endif
