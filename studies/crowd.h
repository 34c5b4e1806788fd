/*
 * crowd.h - other traffic in a region: flows on the links of switches, neighbours on hosts.
 *
 * Each link has, separately in each direction, a load x with median 1: x times its number of host rates in long
 * flows, which take their fair share. It is drawn once per run. docs/discovery-sim.md has the numbers. Pure;
 * deterministic from the seed.
 */
#ifndef STUDIES_CROWD_H
#define STUDIES_CROWD_H

#include "studies/region.h"

#define CROWD_WIDTH 0.6       /* x = exp(CROWD_WIDTH * normal)             */
#define CROWD_FLOWS_MOST 4096u /* of one link                                */

struct crowd {
	uint32_t links;      /* numbered as by region_way() */
	double *x;           /* by link; 0 for the root's */
	uint32_t *flows;     /* by link                           */
	uint32_t machines;
	double *host_share;  /* by machine: the share of its link that a neighbour leaves, 0.5 .. 1 */
};

ESP_CHECKED enum esp_status crowd_init(struct crowd *crowd, const struct region *region, uint64_t seed,
                                       struct error *err);
/* Gives all hosts the whole of their links. */
void crowd_clear_hosts(struct crowd *crowd);
void crowd_fini(struct crowd *crowd); /* accepts a zeroed struct */

#endif
