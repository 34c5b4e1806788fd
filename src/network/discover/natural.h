/*
 * natural.h - groupings that stand out in measured distances, and the worth of each. Pure.
 *
 * Distances are taken as they are, far ones too (confirm.h). A grouping stands out if its groups are more clearly apart
 * than with one group more or fewer. Its worth is the time of a sum by groups: two levels, in proportion to distances.
 * The same search in distances that were dealt to the pairs at random says how much of that is noise.
 */
#ifndef NETWORK_DISCOVER_NATURAL_H
#define NETWORK_DISCOVER_NATURAL_H

#include "network/topo/grouping.h"
#include "network/topo/matrix.h"

/* Where a grouping comes from. */
enum natural_source {
	NATURAL_KMEANS,
	NATURAL_LINKAGE,
	NATURAL_RANDOM, /* a random grouping, then the search by swaps */
	NATURAL_SOURCES,
};
/* "average linkage" */
const char *discover_natural_source_text(enum natural_source source);

struct natural {
	struct grouping grouping;
	enum natural_source source;
	bool polished; /* the search by swaps and moves has changed it */
	double apart;  /* the silhouette of groups as wholes, -1 .. 1; 0 for one group */
	double cost;   /* of a sum by two levels, for each byte and second of distance */
};

struct naturals {
	uint32_t count;
	struct natural *list; /* the first: one group */
	double noise_saves;   /* so many groups save this share of the time in noise (discover_natural_weigh()) */
	double noise_most;    /* the most of several tries */
	double noise_bar;     /* so much must be saved to stand out from it */
};

/* The cost of a sum by these groups, and how clearly they are apart. No distance is unknown. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_natural_judge(const struct matrix *matrix, const struct grouping *grouping,
                                                   double *out_cost, double *out_apart, struct error *err);

/* One group, and what average linkage finds. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_natural_make(const struct matrix *matrix, struct naturals *out, struct error *err);
void discover_natural_fini(struct naturals *naturals); /* accepts a zeroed struct */

/* Adds another one and polishes it. An equal one is there already: nothing happens. ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_natural_add(struct naturals *naturals, const struct matrix *matrix,
                                                 const struct grouping *grouping, enum natural_source source,
                                                 struct error *err);

/* The fastest of those that are about as clearly apart as the clearest; of about equals the clearest. */
uint32_t discover_natural_pick(const struct naturals *naturals);

/* The share of the time that its plan saves beside no groups. */
double discover_natural_saves(const struct naturals *naturals, uint32_t index);

/*
 * Measures the noise for so many groups: the distances are dealt to the pairs at random, several times, and the best
 * grouping is sought as it was before. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status discover_natural_weigh(const struct matrix *matrix, uint32_t groups, uint64_t seed,
                                                   struct naturals *naturals, struct error *err);

/* True if it saves more than noise has, and as much as is worth it. */
bool discover_natural_hints(const struct naturals *naturals, uint32_t index);
/* True if it saves clearly more than noise would. */
bool discover_natural_stands(const struct naturals *naturals, uint32_t index);

#endif
