/*
 * discover_find.h - from readings to groups, and from groups to the seconds of an allreduce: the chain that a job goes through.
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
	struct candidates_options candidates; /* the seed is not used */
	uint64_t bytes;             /* of the allreduce that groups are chosen for */
};

struct discovered {
	struct grouping root;   /* as the paper has it: round(sqrt(n)) groups         */
	struct grouping chosen; /* of any number, by what the readings say (tune/choose.h) */
};

/* Reads by the seed and groups. ESP_ENOMEM and what the parts say. */
ESP_CHECKED enum esp_status find_groups(const struct discover_case *made, const struct find_config *config, uint64_t seed,
                                        struct discovered *out, struct error *err);
void discovered_fini(struct discovered *found); /* of zeros: nothing happens */

/*
 * Seconds of an allreduce on the topology of a region (host i is worker i), every worker starting at once: two-level by
 * group_of, or flat (NULL).
 */
ESP_CHECKED enum esp_status find_seconds(const struct topology *topology, const uint32_t *group_of, const struct once_load *load,
                                         double *out_seconds, struct error *err);

#endif
