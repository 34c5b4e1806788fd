/*
 * model_repeat.h - a model with more of the same: some of its layers, copied as often as one likes.
 *
 * Copies follow their original in the forward pass, each takes as long as it, forward and backward, and is sent right behind it. Pure.
 */
#ifndef SIM_WORKLOAD_MODEL_REPEAT_H
#define SIM_WORKLOAD_MODEL_REPEAT_H

#include "sim/workload/model.h"

/*
 * The layers are those whose parameters' names begin with prefix; they must be neighbours in the forward pass. ESP_EINVAL:
 * they are not, or there are none; ESP_ELIMIT: too many; ESP_ENOMEM. model_fini(out) is allowed in any case.
 */
ESP_CHECKED enum esp_status model_repeat(const struct model *model, const char *prefix, uint32_t copies, struct model *out, struct error *err);

#endif
