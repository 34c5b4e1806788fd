/*
 * discover_best.h - compares the found groups with the best possible ones: runs every balanced grouping of a
 * few machines.
 *
 * Balanced: sizes differ by at most one; any number of groups. One group, and as many as machines, is the flat
 * plan and is run once.
 */
#ifndef STUDIES_DISCOVER_BEST_H
#define STUDIES_DISCOVER_BEST_H

#include "studies/discover_find.h"

#define BEST_MACHINES_MOST 10u /* 8 machines have 1,079 balanced groupings, 10 have 18,022, 12 more than 400,000 */

struct best_config {
	struct region_spec spec; /* at most BEST_MACHINES_MOST machines */
	struct find_config find;
	struct once_load load;
	uint64_t seed; /* of the places of machines and the traffic */
};

/* Seconds. */
struct best_result {
	uint32_t groupings;      /* number of groupings, the flat plan included */
	double best, median, worst; /* over them */
	double flat;
	double chosen, root;     /* the found groupings, which need not be balanced */
	double truth;            /* two-level by racks; flat for a single rack, or one machine per rack */
	uint32_t best_groups, chosen_groups, racks;
	double beaten;           /* share of the groupings that take longer than the chosen one */
};

/* ESP_EINVAL: too many machines. */
ESP_CHECKED enum esp_status best_run(const struct best_config *config, struct best_result *out, struct error *err);

/* Calls each() with every balanced grouping; stops at a status other than ESP_OK and returns it. */
ESP_CHECKED enum esp_status best_each(uint32_t nodes, uint32_t groups,
                                      enum esp_status (*each)(void *user, const uint32_t *group_of), void *user);

#endif
