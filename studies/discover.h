/*
 * discover.h - shared by the experiments with discovery in virtual time: settings, a measured case, the level
 * of noise.
 *
 * docs/discovery-sim.md has the models, docs/results/plink-sim.md the results.
 */
#ifndef STUDIES_DISCOVER_H
#define STUDIES_DISCOVER_H

#include "studies/reading.h"

/* The paper's PAIA of raw latency readings in one datacenter, to which noise is calibrated. */
#define DISCOVER_RAW 0.813
#define DISCOVER_LEVEL_MOST 16.0
#define DISCOVER_CASES 20u

struct discover_setting {
	const char *name;
	const char *about;
	uint32_t datacenters, clusters, rows, racks, rack_hosts, machines;
	enum region_allocation allocation;
};

/* By index; NULL behind the last. */
const struct discover_setting *discover_setting_at(size_t index);
const struct discover_setting *discover_setting_find(const char *name);
struct region_spec discover_spec(const struct discover_setting *setting);

/* The paper's number of groups for so many machines: round(sqrt(n)), at least 1. */
uint32_t discover_root(uint32_t machines);

/* Called after each run or case of an experiment; done may be NULL. */
struct discover_watch {
	void *user;
	void (*done)(void *user);
};

static inline void discover_tell(const struct discover_watch *watch)
{
	if (watch->done)
		watch->done(watch->user);
}

/* A region with the traffic of one run. */
struct discover_case {
	struct region region;
	struct crowd crowd;
};

/* `place` seeds the places of machines, `run` the traffic. */
ESP_CHECKED enum esp_status discover_open(struct discover_case *made, const struct region_spec *spec, uint64_t place,
                                          uint64_t run, struct error *err);
void discover_close(struct discover_case *made); /* accepts a zeroed struct */

/* The mean PAIA of raw latency readings over cases `seed` .. `seed` + count - 1; NAN only if no pair is comparable. */
ESP_CHECKED enum esp_status discover_raw(const struct region_spec *spec, enum reading_noise noise, double level,
                                         uint64_t seed, uint32_t count, double *out_paia, struct error *err);

/*
 * The level at which that mean is `wanted`, by bisection, or DISCOVER_LEVEL_MOST if even that leaves more. Uses
 * raw readings only. READING_QUIET has level 0.
 */
ESP_CHECKED enum esp_status discover_calibrate(const struct region_spec *spec, enum reading_noise noise, double wanted,
                                               uint64_t seed, uint32_t count, double *out_level, double *out_paia,
                                               struct error *err);

#endif
