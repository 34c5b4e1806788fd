/*
 * discover_agreement.h - whether different runs find the same groups: figure 5 of the paper.
 */
#ifndef STUDIES_DISCOVER_AGREEMENT_H
#define STUDIES_DISCOVER_AGREEMENT_H

#include "network/discover/embed.h"
#include "studies/discover.h"

struct agreement_config {
	struct region_spec spec;
	enum reading_noise noise;
	double level;
	struct embed_options embed; /* its alpha and seed are unused */
	bool keep_outliers;         /* no discover_clean_fence() before the embedding */
	double elasticity;          /* of groups, 1 .. 2 */
	uint64_t seed;              /* of the region, and of the first run */
	uint32_t runs;              /* at least 2 */
	/* each run has its own readings and traffic; otherwise only the seeds of embedding and grouping differ */
	bool fresh;
	struct discover_watch watch; /* of runs */
};

/* Adjusted mutual information. */
struct agreement_result {
	uint32_t groups;
	double between[2]; /* by alpha, 1 and 2: mean over all pairs of runs              */
	double truth[2];   /* mean over runs: with the true racks */
	double rows[2];    /* the same with the rows, which latency can tell apart */
};

ESP_CHECKED enum esp_status agreement_run(const struct agreement_config *config, struct agreement_result *out,
                                          struct error *err);

#endif
