/*
 * model_memory.h - the memory of a job's model: taken, zeroed and present before the first round, so that no round
 * waits for a page and a refusal comes when the job begins. The kernel takes seconds for the pages of a big model, so
 * these come in steps. Any thread.
 */
#ifndef HUB_SERVER_MODEL_MEMORY_H
#define HUB_SERVER_MODEL_MEMORY_H

#include <stddef.h>

#include "hub/store/store_lane.h"

/* Arrays for the weights, the sums and the optimizer's states. ESP_ENOMEM. Nothing for a model without elements. */
ESP_CHECKED enum esp_status model_memory_take(const struct hub_layout *layout, const struct optimizer *optimizer,
                                              struct store_model *out, void **out_memory, size_t *out_bytes,
                                              struct error *err);
/* Makes the pages of a step present, before anything is written. Returns where the next step begins; bytes: none. */
size_t model_memory_fill(void *memory, size_t bytes, size_t from);
void model_memory_free(void *memory, size_t bytes); /* NULL is fine */

#endif
