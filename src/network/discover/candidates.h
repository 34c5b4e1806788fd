/*
 * candidates.h - candidate groupings for every number of groups, from measured distances.
 *
 * Cleans the distances (clean.h), embeds them (embed.h), and for each number of groups runs constrained k-means
 * from several seeds (cluster.h). Of the runs whose groups are nearly as tight as the tightest, the one with
 * the least diversity of sizes is kept, ties by seed. Two more may be kept: that one after polishing with all
 * distances (affinity.h), and the most even run of all. Whether balance or tightness is faster is decided by
 * the cost model (src/tune), not by geometry. discover_candidates_choose() chooses by the distances alone, for reports
 * and without a cost model. Pure; deterministic from the seed.
 */
#ifndef NETWORK_DISCOVER_CANDIDATES_H
#define NETWORK_DISCOVER_CANDIDATES_H

#include "network/discover/embed.h"
#include "network/topo/grouping.h"

/* Zeros are the defaults. */
struct candidates_options {
	struct embed_options embed; /* its seed is derived from `seed` */
	double elasticity;          /* 1 .. 2; 0: 2                                              */
	uint32_t tries;             /* seeds for each number of groups; 0: 8, above 128 nodes 3  */
	uint32_t groups_least;      /* 0: 1                                                      */
	uint32_t groups_most;       /* 0: half of the nodes                                      */
	/*
	 * Every number of groups; otherwise above 64 in steps of a sixteenth, and with more than 128 nodes above 16
	 * in steps of an eighth, and all numbers around the one with the most evidence.
	 */
	bool every;
	/*
	 * Compares ratios instead of differences: for inverse bandwidths, where two or four pairs on one link are
	 * both far. Distances are then logarithms relative to the shortest one, in the embedding and in the gap.
	 */
	bool ratios;
	bool keep_outliers;         /* no discover_clean_fence()                                          */
	bool ways;                  /* groups have ways of their own, which may differ (affinity.h) */
	/* only these numbers of groups, and one group: for many nodes; NULL: as above. Borrowed */
	const uint32_t *only;
	uint32_t only_count;
	uint64_t seed;
};

struct candidate {
	struct grouping grouping;
	double inertia;    /* of the k-means                                                              */
	double silhouette; /* -1 .. 1, mean over the nodes, of the embedded distances; 0 for one group */
	double agreement;  /* mean adjusted mutual information with the k-means runs for this number of groups */
	/* mean additional distance to other groups, in the matrix's unit (affinity.h); 0 for one group */
	double gap;
	double evidence;   /* for the grouping against one group, in nats; 0 for one group */
	uint32_t nth;      /* index in the order of discovery */
};

struct candidates {
	uint32_t count;
	/* sorted by number of groups, without repetitions; the first is one group unless groups_least excludes it */
	struct candidate *list;
	struct embedding embedding;
};

/* At least one node. ESP_EINVAL, ESP_ENOMEM; errors of matrix_check(). */
ESP_CHECKED enum esp_status discover_candidates_make(const struct matrix *matrix,
                                                     const struct candidates_options *options, struct candidates *out,
                                                     struct error *err);
void discover_candidates_fini(struct candidates *candidates);

/* A choice by the distances alone. */
struct candidates_choice {
	uint32_t index;    /* into the list                                                                           */
	double sure;       /* discover_candidates_sure() of it */
	double within;     /* median measured distance within groups; NAN: there is none */
	double across;     /* median measured distance between groups; NAN */
	double agreement;  /* mean adjusted mutual information with the results of other seeds, embedding included */
};

/*
 * *out, from 0 to 1: the candidate's share of the evidence for all candidates and for all groupings that differ
 * from it by one node. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_candidates_sure(const struct matrix *matrix,
                                                     const struct candidates_options *options,
                                                     const struct candidates *candidates, uint32_t index, double *out,
                                                     struct error *err);

/*
 * Chooses the candidate with the most evidence if that is above 3 (odds of twenty to one), otherwise one group.
 * The candidates come from this matrix and these options, with one group among them. Takes as long as four
 * embeddings with one restart (two above 256 nodes), for the agreement. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_candidates_choose(const struct matrix *matrix,
                                                       const struct candidates_options *options,
                                                       const struct candidates *candidates,
                                                       struct candidates_choice *out, struct error *err);

#endif
