/*
 * steps_period.h - what repeats in a sequence of calls. Private to steps.c.
 */
#ifndef SIM_WORKLOAD_STEPS_PERIOD_H
#define SIM_WORKLOAD_STEPS_PERIOD_H

#include "sim/workload/steps.h"

/*
 * The length of a step and where in rank->calls (by number) each one begins; *out_starts is the caller's to free. wanted: the length if it is
 * known, otherwise 0. ESP_EINVAL: nothing repeats; ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status steps_period(const struct steps_rank *rank, uint32_t wanted, uint32_t *out_length, uint32_t **out_starts,
                                         uint32_t *out_count, struct error *err);

#endif
