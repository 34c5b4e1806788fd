/*
 * steps_period.h - finds the period of a sequence of calls. Private to steps.c. Pure.
 */
#ifndef SIM_WORKLOAD_STEPS_PERIOD_H
#define SIM_WORKLOAD_STEPS_PERIOD_H

#include "sim/workload/steps.h"

/*
 * The length of a step and the first call of each one in rank->calls (by number); the caller frees *out_starts.
 * wanted: the length if it is known, otherwise 0. ESP_EINVAL: nothing repeats; ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status workload_steps_period(const struct steps_rank *rank, uint32_t wanted, uint32_t *out_length,
                                                  uint32_t **out_starts, uint32_t *out_count, struct error *err);

#endif
