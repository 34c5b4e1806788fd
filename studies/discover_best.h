/*
 * discover_best.h - how far what was found is from the best there is: every balanced grouping of a few machines, run.
 *
 * Balanced: groups whose sizes differ by one at most, of any number. One group, and as many as machines, is flat and is run
 * once.
 */
#ifndef STUDIES_DISCOVER_BEST_H
#define STUDIES_DISCOVER_BEST_H

#include "studies/discover_find.h"

#define BEST_MACHINES_MOST 10u /* 8 machines have 1,079 balanced groupings, 10 have 18,022, 12 more than 400,000 */

struct best_config {
	struct region_spec spec; /* at most BEST_MACHINES_MOST machines */
	struct find_config find;
	struct once_load load;
	uint64_t seed; /* of where machines stand and of the traffic */
};

/* Seconds. */
struct best_result {
	uint32_t groupings;      /* that were run, flat among them */
	double best, median, worst; /* over them                   */
	double flat;
	double chosen, root;     /* what was found; it need not be balanced */
	double truth;            /* two-level by the racks; flat if there is one rack, or one machine in each */
	uint32_t best_groups, chosen_groups, racks;
	double beaten;           /* the share of the groupings that take longer than what was chosen */
};

/* ESP_EINVAL: too many machines. */
ESP_CHECKED enum esp_status best_run(const struct best_config *config, struct best_result *out, struct error *err);

/* Calls each() with every balanced grouping of so many nodes into so many groups; its status ends that unless ESP_OK. */
ESP_CHECKED enum esp_status best_each(uint32_t nodes, uint32_t groups, enum esp_status (*each)(void *user, const uint32_t *group_of),
                                      void *user);

#endif
