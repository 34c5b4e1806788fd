/*
 * rank_log.h - where a rank's log goes, and the names of its files. Private to src/rank.
 */
#ifndef RANK_RANK_LOG_H
#define RANK_RANK_LOG_H

#include "rank/state.h"

/* The level and subsystems of the settings. For rank_open(), once they are read. */
void rank_log_set(struct rank *context);
/* The file of the settings, unless the caller has a function of its own. For rank_open(), once the rank is known. */
void rank_log_open(struct rank *context, bool has_own_sink);
/* Accepts a zeroed context. */
void rank_log_close(struct rank *context);

/* A name of the settings for this rank. ESP_EINVAL, ESP_ELIMIT. */
#define RANK_PATH 512u
ESP_CHECKED enum esp_status rank_path(const struct rank *context, const char *pattern, char path[RANK_PATH],
                                         struct error *err);

#endif
