/*
 * sim_story.h - a simulated training as a trace in Chrome's form: what everybody computes, sends and receives.
 *
 * One process per node; its threads are "compute", "out" and "in". Opens in Perfetto and chrome://tracing.
 */
#ifndef CLI_SIM_STORY_H
#define CLI_SIM_STORY_H

#include "base/outfile.h"
#include "sim/train.h"

struct sim_story {
	struct outfile file;
	uint32_t workers, servers;
	uint8_t *named; /* tracks that have a name: by node; lost memory costs names only */
	uint32_t named_count;
};

/* Nodes up to workers are workers, then servers, then switches and hubs. */
ESP_CHECKED enum esp_status sim_story_open(struct sim_story *story, const char *path, uint32_t workers, uint32_t servers, struct error *err);
struct train_watch sim_story_watch(struct sim_story *story);
/* The file has its name now, if it is to be kept. */
ESP_CHECKED enum esp_status sim_story_close(struct sim_story *story, bool keep, struct error *err);

#endif
