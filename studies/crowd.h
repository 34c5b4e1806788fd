/*
 * crowd.h - other people's traffic in a region: flows on the links of switches, neighbours on hosts.
 *
 * Each link has, each way by itself, a crowd x of median 1: so many times as many long flows as it has host rates. They take
 * their fair share. What is drawn is fixed for a run. docs/discovery-sim.md has the numbers. Pure; deterministic from the seed.
 */
#ifndef STUDIES_CROWD_H
#define STUDIES_CROWD_H

#include "studies/region.h"

#define CROWD_WIDTH 0.6       /* x = exp(CROWD_WIDTH * normal)             */
#define CROWD_FLOWS_MOST 4096u /* of one link                                */

struct crowd {
	uint32_t links;      /* as region_way() numbers them      */
	double *x;           /* by link; those of the whole are 0 */
	uint32_t *flows;     /* by link                           */
	uint32_t machines;
	double *host_share;  /* by machine: what a neighbour leaves of its link, 0.5 .. 1 */
};

ESP_CHECKED enum esp_status crowd_init(struct crowd *crowd, const struct region *region, uint64_t seed, struct error *err);
/* All hosts have the whole of their links. */
void crowd_clear_hosts(struct crowd *crowd);
void crowd_fini(struct crowd *crowd); /* of zeros: nothing happens */

#endif
