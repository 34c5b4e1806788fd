/*
 * run_env.h - the variables that every rank of a job is given.
 *
 * A list of NAME=VALUE. Locally they are added to the environment of espalier run; on other hosts
 * they are all that is passed. The job's key is among them, so they never stand on a command line,
 * and are wiped at the end.
 */
#ifndef TOOLS_LAUNCHER_RUN_ENV_H
#define TOOLS_LAUNCHER_RUN_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct run_env {
	char **words; /* NAME=VALUE, each name once; ends with NULL */
	size_t count;
};

/* Adds a variable or gives it another value. ESP_ENOMEM. */
ESP_CHECKED enum esp_status run_env_set(struct run_env *env, const char *name, const char *value, struct error *err);

bool run_env_has(const struct run_env *env, const char *name);

/* NAME=VALUE from the command line. ESP_EINVAL if it is none, or one that belongs to espalier run. */
ESP_CHECKED enum esp_status run_env_add(struct run_env *env, const char *word, struct error *err);

/* The settings that the environment of this process has: on other hosts nobody else tells them. */
ESP_CHECKED enum esp_status run_env_add_settings(struct run_env *env, struct error *err);

void run_env_fini(struct run_env *env);

#endif
