/*
 * discover_accuracy.h - how well readings show which machines are near, before and after embedding: section 5.5
 * of the paper.
 */
#ifndef STUDIES_DISCOVER_ACCURACY_H
#define STUDIES_DISCOVER_ACCURACY_H

#include "network/discover/embed.h"
#include "studies/discover.h"

enum accuracy_probe { ACCURACY_LATENCY, ACCURACY_BANDWIDTH };

struct accuracy_config {
	struct region_spec spec;
	enum accuracy_probe probe;
	enum reading_noise noise; /* of latency */
	double level;
	struct embed_options embed; /* its alpha and seed are unused */
	bool keep_outliers;         /* no discover_clean_fence() before the embedding: equation 1 only */
	uint64_t seed;            /* cases seed .. seed + count - 1 */
	uint32_t count;           /* at least 1 */
	struct discover_watch watch; /* of cases */
};

/* Over the cases: mean, smallest and largest. */
struct accuracy_range {
	double mean, least, most;
};

struct accuracy_result {
	struct accuracy_range raw, alpha1, alpha2; /* PAIA, 0 .. 1 */
	uint32_t alpha1_won, alpha2_won;           /* cases in which the embedding was better than raw readings */
	double triplets;                           /* mean */
	double held[REGION_LEVELS];                /* mean: how many vertices of each level have machines */
};

ESP_CHECKED enum esp_status accuracy_run(const struct accuracy_config *config, struct accuracy_result *out,
                                         struct error *err);

#endif
