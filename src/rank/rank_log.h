/*
 * rank_log.h - where a rank's log goes, and the names of its files. Private to src/rank.
 */
#ifndef RANK_RANK_LOG_H
#define RANK_RANK_LOG_H

#include "rank/rank.h"

/* The level and subsystems of the settings. For context_open(), once they are read. */
void context_log_set(struct context *context);
/* The file of the settings, unless the caller has a function of its own. For context_open(), once the rank is known. */
void context_log_open(struct context *context, bool has_own_sink);
/* Accepts a zeroed context. */
void context_log_close(struct context *context);

/* A name of the settings for this rank. ESP_EINVAL, ESP_ELIMIT. */
#define CONTEXT_PATH 512u
ESP_CHECKED enum esp_status context_path(const struct context *context, const char *pattern, char path[CONTEXT_PATH],
                                         struct error *err);

#endif
