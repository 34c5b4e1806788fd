/*
 * discover_speed.h - the value of groups: two-level plans by several groupings against the flat plan. Figures 8
 * and 9.
 *
 * Machines stay where they are. Each run has its own traffic and readings; all plans of a run see the same
 * traffic.
 */
#ifndef STUDIES_DISCOVER_SPEED_H
#define STUDIES_DISCOVER_SPEED_H

#include "studies/discover_find.h"

enum speed_way {
	SPEED_FLAT,
	SPEED_PROBED, /* found groups, as many as the cost model chooses */
	SPEED_TUNED,  /* the same groups, after SPEED_STEPS steps of the tuner */
	SPEED_ROOT,   /* round(sqrt(n)) found groups: the paper's */
	SPEED_RANDOM, /* round(sqrt(n)) balanced random groups */
	SPEED_TRUTH,  /* racks                                         */
	SPEED_WAYS,
};
#define SPEED_STEPS 6u
/* The parts of a run: finding groups, an allreduce for each way, and one before each step of the tuner. */
#define SPEED_PARTS (1u + SPEED_WAYS + SPEED_STEPS)
const char *speed_way_name(enum speed_way way);

struct speed_config {
	struct region_spec spec;
	struct find_config find;
	struct once_load load;
	bool whole_hosts; /* hosts have their whole links */
	uint64_t seed; /* of the places of machines; runs have consecutive seeds from here on */
	uint32_t runs; /* at least one */
	uint32_t at_once; /* threads; 0: one */
	struct discover_watch watch; /* of the SPEED_PARTS parts of each run */
};

struct speed_summary {
	double mean, p50, p95, least, most; /* seconds */
};

struct speed_result {
	uint32_t runs;
	double *seconds; /* by way and run: way * runs + run, in the order of the runs */
	struct speed_summary summary[SPEED_WAYS];
	double groups[SPEED_WAYS]; /* mean number of groups                     */
	double ami[SPEED_WAYS];    /* mean, with the racks; NAN for flat       */
	uint32_t held[REGION_LEVELS];
};

ESP_CHECKED enum esp_status speed_run(const struct speed_config *config, struct speed_result *out, struct error *err);
void speed_fini(struct speed_result *result); /* accepts a zeroed struct */

/* The value that so many per cent (0 .. 100) of the values do not exceed; values are sorted. */
double speed_percentile(const double *sorted, uint32_t count, double percent);

#endif
