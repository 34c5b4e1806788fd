/*
 * discover_tune.h - retuning in virtual time: a host slows down and recovers. Figure 10 of the paper.
 *
 * Machines of one switch (or of several racks) repeat an allreduce. After each step the tuner (src/tune) gets
 * the machines' measurements of their connections, and its masters are used from the next step on. The plan
 * with even masters runs beside it for comparison.
 */
#ifndef STUDIES_DISCOVER_TUNE_H
#define STUDIES_DISCOVER_TUNE_H

#include "sim/once.h"
#include "tune/tuner.h"

struct autotune_config {
	uint32_t machines;
	uint32_t racks;        /* 1: the flat plan with one group; more: two-level, contiguous */
	double rate;           /* of a host's link, bytes per second                             */
	double oversubscribe;  /* of the racks; 0: 1                                             */
	double slow;           /* the last machine's share of its rate while it is slow, above 0, at most 1 */
	uint32_t slow_from, slow_to; /* it is slow in steps slow_from .. slow_to - 1 */
	uint32_t steps;
	struct once_load load;
};

struct autotune_step {
	double tuned, even; /* seconds of the allreduce                                              */
	double balance;     /* the most that a machine sends over the least, with the current masters */
	uint64_t sent;      /* bytes that the last machine sends                                     */
	struct tune_report report; /* the tuner's report after the step */
};

/* out has room for config->steps. ESP_EINVAL, ESP_ENOMEM. */
ESP_CHECKED enum esp_status autotune_run(const struct autotune_config *config, struct autotune_step *out,
                                         struct error *err);

#endif
