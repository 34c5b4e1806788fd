/*
 * sim_model.h - finds the models that are shipped with Espalier, by name. Reads files; any thread.
 */
#ifndef TOOLS_SIM_SIM_MODEL_H
#define TOOLS_SIM_SIM_MODEL_H

#include "sim/workload/model.h"

/*
 * Opens a model by its name ("vgg-16"), or a file: a text with a slash in it or that ends with .json. ESP_EINVAL: no
 * model has that name, and err lists the names; otherwise errors of workload_model_load().
 */
ESP_CHECKED enum esp_status sim_tool_model_open(struct model *model, const char *name,
                                                const struct model_options *options, struct error *err);

/*
 * The names of the shipped models, sorted, ending with NULL. The caller frees each and the list. NULL: no models were
 * found.
 */
char **sim_tool_model_names(void);

#endif
