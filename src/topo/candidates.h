/*
 * candidates.h - groupings to choose from, for every number of groups: from measured distances to a list.
 *
 * Cleans the distances (clean.h), embeds them (embed.h), and for each number of groups k runs constrained k-means from
 * several seeds. Of the runs whose groups are nearly as tight as the tightest, the one with the least diversity of sizes is
 * kept, ties by seed; if another run was more even still, it is kept beside it as a second candidate: whether balance or
 * tightness is faster is for the cost model to say (src/tune), not for geometry. candidates_choose() chooses by geometry
 * alone, for reports and where there is no cost model. Pure; deterministic from the seed.
 */
#ifndef TOPO_CANDIDATES_H
#define TOPO_CANDIDATES_H

#include "topo/embed.h"
#include "topo/grouping.h"

/* Zeros are the defaults. */
struct candidates_options {
	struct embed_options embed; /* its seed is taken from here */
	double elasticity;          /* 1 .. 2; 0: 2                                              */
	uint32_t tries;             /* seeds for each number of groups; 0: 8, above 128 nodes 3  */
	uint32_t groups_least;      /* 0: 1                                                      */
	uint32_t groups_most;       /* 0: half of the nodes                                      */
	bool every;                 /* every number of groups also beyond 64; otherwise steps of a sixteenth there */
	bool keep_outliers;         /* no clean_fence()                                          */
	uint64_t seed;
};

struct candidate {
	struct grouping grouping;
	double inertia;    /* of the k-means                                                              */
	double silhouette; /* -1 .. 1, mean over the nodes, of the embedded distances; 0 for one group    */
	double agreement;  /* mean adjusted mutual information of the runs for this number of groups      */
};

struct candidates {
	uint32_t count;
	struct candidate *list; /* by number of groups, then tight before even; the first is one group unless groups_least says otherwise */
	struct embedding embedding;
};

/* At least one node. ESP_EINVAL, ESP_ENOMEM; errors of matrix_check(). */
ESP_CHECKED enum esp_status candidates_make(const struct matrix *matrix, const struct candidates_options *options,
                                            struct candidates *out, struct error *err);
void candidates_fini(struct candidates *candidates);

/* What the distances alone say for a choice. */
struct candidates_choice {
	uint32_t index;     /* into the list                                                                          */
	double within;      /* median of the measured distances inside groups; NAN: there is none                     */
	double across;      /* and between groups; NAN                                                                */
	double silhouette;  /* of the choice                                                                          */
	double agreement;   /* mean adjusted mutual information with what other seeds find, from the embedding on   */
	double chance;      /* share of shuffled matrices whose best grouping is as good as this: below 0.05 is no accident */
};

/*
 * The candidate with the largest silhouette, if the same search finds nothing as good in matrices whose distances are
 * shuffled among the pairs (each node's own part kept); otherwise one group. candidates come from these options, with one group among them. shuffles: 0 is 19, which takes 19 times
 * as long as one restart of candidates_make(). ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status candidates_choose(const struct matrix *matrix, const struct candidates_options *options,
                                              const struct candidates *candidates, uint32_t shuffles,
                                              struct candidates_choice *out, struct error *err);

#endif
