/*
 * sim_model.h - the models that are shipped, found by their names from the place of this command.
 */
#ifndef TOOLS_SIM_SIM_MODEL_H
#define TOOLS_SIM_SIM_MODEL_H

#include "sim/workload/model.h"

/*
 * A model by its name ("vgg-16"), or a file: what has a slash in it or ends with .json. ESP_EINVAL: no model has that name, err
 * says which there are; otherwise as model_load().
 */
ESP_CHECKED enum esp_status sim_model_open(struct model *model, const char *name, const struct model_options *options, struct error *err);

/* The names of what is shipped, sorted; NULL behind the last. The caller frees each and the list. NULL: none was found. */
char **sim_model_names(void);

#endif
