/*
 * candidates.h - groupings to choose from, for every number of groups: from measured distances to a list.
 *
 * Cleans the distances (clean.h), embeds them (embed.h), and for each number of groups k runs constrained k-means from
 * several seeds (cluster.h). Of the runs whose groups are nearly as tight as the tightest, the one with the least diversity of
 * sizes is kept, ties by seed. Two more may stand beside it: what becomes of it when nodes move to where all distances
 * together want them (affinity.h), and the most even run of all. Whether balance or tightness is faster is for
 * the cost model to say (src/tune), not for geometry. candidates_choose() chooses by the distances alone, for reports and where
 * there is no cost model. Pure; deterministic from the seed.
 */
#ifndef NETWORK_DISCOVER_CANDIDATES_H
#define NETWORK_DISCOVER_CANDIDATES_H

#include "network/discover/embed.h"
#include "network/topo/grouping.h"

/* Zeros are the defaults. */
struct candidates_options {
	struct embed_options embed; /* its seed is taken from here */
	double elasticity;          /* 1 .. 2; 0: 2                                              */
	uint32_t tries;             /* seeds for each number of groups; 0: 8, above 128 nodes 3  */
	uint32_t groups_least;      /* 0: 1                                                      */
	uint32_t groups_most;       /* 0: half of the nodes                                      */
	bool every;                 /* every number of groups; otherwise beyond 64 in steps of a sixteenth, and of more than 128 nodes beyond
	                             * 16 in steps of an eighth, and all numbers around that with the most evidence */
	bool ratios;                /* what counts is how many times as far, not how much further: for inverse bandwidths, where two
	                             * or four pairs on one link are both far. Distances are then logarithms of the measured ones over
	                             * the shortest, in the embedding and as the gap */
	bool keep_outliers;         /* no clean_fence()                                          */
	bool ways;                  /* groups have ways out of their own, which may differ (affinity.h) */
	uint64_t seed;
};

struct candidate {
	struct grouping grouping;
	double inertia;    /* of the k-means                                                              */
	double silhouette; /* -1 .. 1, mean over the nodes, of the embedded distances; 0 for one group    */
	double agreement;  /* mean adjusted mutual information of the k-means runs for this number of groups with it */
	double gap;        /* how much further other groups are, in the matrix's unit (affinity.h); 0 for one group */
	double evidence;   /* for the grouping against one group, in nats; 0 for one group                */
	uint32_t nth;      /* when it was found */
};

struct candidates {
	uint32_t count;
	struct candidate *list; /* by number of groups; no grouping twice; the first is one group unless groups_least says otherwise */
	struct embedding embedding;
};

/* At least one node. ESP_EINVAL, ESP_ENOMEM; errors of matrix_check(). */
ESP_CHECKED enum esp_status candidates_make(const struct matrix *matrix, const struct candidates_options *options,
                                            struct candidates *out, struct error *err);
void candidates_fini(struct candidates *candidates);

/* What the distances alone say for a choice. */
struct candidates_choice {
	uint32_t index;    /* into the list                                                                           */
	double sure;       /* candidates_sure() of it                                                                 */
	double within;     /* median of the distances inside groups, as measured; NAN: there is none                  */
	double across;     /* and between groups; NAN                                                                 */
	double agreement;  /* mean adjusted mutual information with what other seeds find, from the embedding on       */
};

/*
 * *out, from 0 to 1: what a candidate has of the evidence for all of them and for all groupings that differ from it by one node, whether they are
 * candidates or not. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status candidates_sure(const struct matrix *matrix, const struct candidates_options *options,
                                            const struct candidates *candidates, uint32_t index, double *out, struct error *err);

/*
 * The candidate with the most evidence, or one group unless that is above 3 (odds of twenty to one). candidates come from this
 * matrix and these options, with one group among them. Takes as long as four embeddings with one restart (two of more than 256 nodes), for the agreement. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status candidates_choose(const struct matrix *matrix, const struct candidates_options *options,
                                              const struct candidates *candidates, struct candidates_choice *out,
                                              struct error *err);

#endif
