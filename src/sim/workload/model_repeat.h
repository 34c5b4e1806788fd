/*
 * model_repeat.h - a model with copies of some of its layers.
 *
 * Copies follow their original in the forward pass, take the same times, forward and backward, and are sent
 * right behind it. Pure.
 */
#ifndef SIM_WORKLOAD_MODEL_REPEAT_H
#define SIM_WORKLOAD_MODEL_REPEAT_H

#include "sim/workload/model.h"

/*
 * The layers are those with parameters whose names begin with prefix; they must be adjacent in the forward
 * pass. ESP_EINVAL: they are not, or there are none; ESP_ELIMIT: too many; ESP_ENOMEM. workload_model_fini(out) is
 * allowed in any case.
 */
ESP_CHECKED enum esp_status workload_model_repeat(const struct model *model, const char *prefix, uint32_t copies,
                                                  struct model *out, struct error *err);

#endif
