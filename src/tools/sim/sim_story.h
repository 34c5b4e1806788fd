/*
 * sim_story.h - a simulated training as a trace in Chrome's format, for Perfetto and chrome://tracing: computing,
 * sending and receiving of each node. One thread; writes the file.
 *
 * A process per worker, server and hub; its tracks are "compute", "out" for each NIC, and "in"; if connections share
 * links, one out and one in for each connection. Switches are not drawn: messages through them appear at the hosts
 * where they come from and go to. Arrows lead from where a message leaves to where it arrives (sim_arrows.h).
 */
#ifndef TOOLS_SIM_SIM_STORY_H
#define TOOLS_SIM_SIM_STORY_H

#include "base/outfile.h"
#include "sim/train.h"
#include "tools/sim/sim_arrows.h"

/* The nodes: numbers below `workers` are workers, then come servers, then hubs or switches. */
struct sim_story_cast {
	uint32_t workers, servers;
	bool has_hubs;
	bool shares_links; /* connections send at the same time; otherwise a NIC sends one message after the other */
	const struct model *model; /* for names of parameters; borrowed */
};

struct sim_story_node;

struct sim_story {
	struct outfile file;
	struct trace_events events;
	struct sim_story_cast cast;
	struct sim_story_node *nodes;
	size_t node_count;
	struct sim_arrows arrows;
};

ESP_CHECKED enum esp_status sim_tool_story_open(struct sim_story *story, const char *path,
                                                const struct sim_story_cast *cast, struct error *err);
struct train_watch sim_tool_story_watch(struct sim_story *story);
/* keep: the file gets its name; otherwise it is removed. */
ESP_CHECKED enum esp_status sim_tool_story_close(struct sim_story *story, bool keep, struct error *err);

#endif
