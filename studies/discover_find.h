/*
 * discover_find.h - from readings to groups, and from groups to the time of an allreduce: the steps of a job.
 */
#ifndef STUDIES_DISCOVER_FIND_H
#define STUDIES_DISCOVER_FIND_H

#include "network/discover/candidates.h"
#include "sim/once.h"
#include "studies/discover.h"

enum find_by { FIND_BY_LATENCY, FIND_BY_BANDWIDTH };

struct find_config {
	enum find_by by;
	enum reading_noise noise;
	double level;               /* of the noise of latency */
	struct candidates_options candidates; /* the seed is unused */
	uint64_t bytes;             /* of the allreduce that groups are chosen for */
};

struct discovered {
	struct grouping root;   /* the paper's: round(sqrt(n)) groups */
	struct grouping chosen; /* of any number, by the readings (choose_grouping.h) */
};

/* Reads with the seed, and groups. ESP_ENOMEM and errors of the parts. */
ESP_CHECKED enum esp_status find_groups(const struct discover_case *made, const struct find_config *config,
                                        uint64_t seed, struct discovered *out, struct error *err);
void discovered_fini(struct discovered *found); /* accepts a zeroed struct */

/*
 * Seconds of an allreduce on the topology of a region (host i is worker i), all workers starting at once:
 * two-level by group_of, or flat (NULL).
 */
ESP_CHECKED enum esp_status find_seconds(const struct topology *topology, const uint32_t *group_of,
                                         const struct once_load *load, double *out_seconds, struct error *err);

#endif
