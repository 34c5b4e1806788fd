/*
 * launcher_env.h - the variables that every rank of a job is given. Reads the environment; no other I/O.
 *
 * A list of NAME=VALUE. Local ranks get them in addition to the environment of espalier run; ranks on other
 * hosts get nothing else. The job's key is among them, so they are never put on a command line, and are wiped
 * at the end.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_ENV_H
#define TOOLS_LAUNCHER_LAUNCHER_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct run_env {
	char **words; /* NAME=VALUE, each name once; ends with NULL */
	size_t count;
};

/* Adds a variable, or replaces its value. ESP_ENOMEM. */
ESP_CHECKED enum esp_status launcher_env_set(struct run_env *env, const char *name, const char *value,
                                             struct error *err);

bool launcher_env_has(const struct run_env *env, const char *name);

/* NAME=VALUE from the command line. ESP_EINVAL if it has another form, or is a variable of espalier run's own. */
ESP_CHECKED enum esp_status launcher_env_add(struct run_env *env, const char *word, struct error *err);

/* Adds the settings in this process's environment, for ranks on other hosts. */
ESP_CHECKED enum esp_status launcher_env_add_settings(struct run_env *env, struct error *err);

void launcher_env_fini(struct run_env *env);

#endif
