/*
 * tuned.h - a job that retunes itself in virtual time: an allreduce, the machines' measurements of their
 * connections, and the tuner's (src/tune) masters for the next one.
 *
 * Worker i is on host i of the topology. The rate of a connection is the bytes over the time in which it had
 * data to send, as the kernel counts it in a job.
 */
#ifndef STUDIES_TUNED_H
#define STUDIES_TUNED_H

#include "network/topo/topology.h"
#include "sim/once.h"
#include "tune/tuner.h"

struct tuned {
	uint32_t machines;
	uint32_t *group_of;
	struct tuner tuner;
	struct tune_node *nodes; /* of the last step */
	/* By sender and receiver: */
	uint64_t *bytes;
	double *busy; /* seconds in which a message was being sent */
};

/* group_of is copied: numbered from 0 without gaps; all 0 is the flat plan. ESP_EINVAL, ESP_ENOMEM. */
ESP_CHECKED enum esp_status tuned_init(struct tuned *tuned, const uint32_t *group_of, uint32_t machines,
                                       struct error *err);
void tuned_fini(struct tuned *tuned); /* accepts a zeroed struct */

/* Runs one allreduce with the current masters, measures it, and lets the tuner change them. out_report may be NULL. */
ESP_CHECKED enum esp_status tuned_step(struct tuned *tuned, const struct topology *topology,
                                       const struct once_load *load, double *out_seconds,
                                       struct tune_report *out_report, struct error *err);

/* One allreduce with these masters, without tuning. */
ESP_CHECKED enum esp_status tuned_without(const struct tuned *tuned, const struct plan_masters *masters,
                                          const struct topology *topology, const struct once_load *load,
                                          double *out_seconds, struct error *err);

/* The most that a machine sent in the last step, over the least. */
double tuned_balance(const struct tuned *tuned);

#endif
