/*
 * discover.h - what the experiments with discovery in virtual time have in common: settings, one measured case, the level of noise.
 *
 * docs/discovery-sim.md says what is modelled, and docs/results/plink-sim.md what comes out.
 */
#ifndef STUDIES_DISCOVER_H
#define STUDIES_DISCOVER_H

#include "studies/reading.h"

/* The paper's PAIA of raw latency readings in one datacenter: what noise is calibrated to. */
#define DISCOVER_RAW 0.813
#define DISCOVER_LEVEL_MOST 16.0
#define DISCOVER_CASES 20u

struct discover_setting {
	const char *name;
	const char *about;
	uint32_t datacenters, clusters, rows, racks, rack_hosts, machines;
	enum region_allocation allocation;
};

/* region, datacenter, job, hall, corner; NULL beyond the last. */
const struct discover_setting *discover_setting_at(size_t index);
const struct discover_setting *discover_setting_find(const char *name);
struct region_spec discover_spec(const struct discover_setting *setting);

/* How many groups the paper makes of so many machines: round(sqrt(n)), at least 1. */
uint32_t discover_root(uint32_t machines);

/* Told after each run or case of an experiment; done may be NULL. */
struct discover_watch {
	void *user;
	void (*done)(void *user);
};

static inline void discover_tell(const struct discover_watch *watch)
{
	if (watch->done)
		watch->done(watch->user);
}

/* A region with the traffic of one run in it. */
struct discover_case {
	struct region region;
	struct crowd crowd;
};

/* Where machines stand comes from `place`, the traffic from `run`. */
ESP_CHECKED enum esp_status discover_open(struct discover_case *made, const struct region_spec *spec, uint64_t place, uint64_t run,
                                          struct error *err);
void discover_close(struct discover_case *made); /* of zeros: nothing happens */

/* Cases `seed` .. `seed` + count - 1 of a setting: the mean PAIA of raw latency readings; NAN-free unless nothing is comparable. */
ESP_CHECKED enum esp_status discover_raw(const struct region_spec *spec, enum reading_noise noise, double level, uint64_t seed,
                                         uint32_t count, double *out_paia, struct error *err);

/*
 * The level at which that is `wanted`, by bisection, or DISCOVER_LEVEL_MOST where even that leaves more. Looks at raw
 * readings alone. QUIET has level 0.
 */
ESP_CHECKED enum esp_status discover_calibrate(const struct region_spec *spec, enum reading_noise noise, double wanted, uint64_t seed,
                                               uint32_t count, double *out_level, double *out_paia, struct error *err);

#endif
