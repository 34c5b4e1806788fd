/*
 * sim_story.h - a simulated training as a trace in Chrome's form: what everybody computes, sends and receives.
 *
 * One process per worker, server and hub; its tracks are "compute", "out" for each NIC, and "in"; where links are
 * shared, one out and one in for each connection. A switch has none: what it passes on stands where it comes from and where it goes.
 * Arrows go from where a message leaves to where it arrives (sim_arrows.h).
 * Opens in Perfetto and chrome://tracing.
 */
#ifndef TOOLS_SIM_SIM_STORY_H
#define TOOLS_SIM_SIM_STORY_H

#include "base/outfile.h"
#include "sim/train.h"
#include "tools/sim/sim_arrows.h"

/* Who plays: nodes up to workers are workers, then come servers, then hubs or switches. */
struct sim_story_cast {
	uint32_t workers, servers;
	bool has_hubs;
	bool shares_links; /* connections send at the same time; otherwise a NIC sends one message after the other */
	const struct model *model; /* whose parameters are named; borrowed */
};

struct sim_story_node;

struct sim_story {
	struct outfile file;
	struct trace_events events;
	struct sim_story_cast cast;
	struct sim_story_node *nodes;
	uint32_t node_count;
	struct sim_arrows arrows;
};

ESP_CHECKED enum esp_status sim_story_open(struct sim_story *story, const char *path, const struct sim_story_cast *cast, struct error *err);
struct train_watch sim_story_watch(struct sim_story *story);
/* The file has its name now, if it is to be kept. */
ESP_CHECKED enum esp_status sim_story_close(struct sim_story *story, bool keep, struct error *err);

#endif
