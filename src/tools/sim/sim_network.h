/*
 * sim_network.h - the options that describe the network on which a plan is simulated, shared by the commands that
 * simulate plans, and the way from these options to a result. Main thread; reads files, prints errors on stderr.
 *
 *       struct sim_network network;
 *       size_t count = sim_tool_network_options(&network, options);
 *       ... the command's own options, options_parse() ...
 *       int exit_status = sim_tool_network_take(&network, COMMAND);           checks, and reads the topology's file
 *       status = sim_tool_network_run(&network, plan, NULL, NULL, &result, err);
 *       sim_tool_network_fini(&network);
 */
#ifndef TOOLS_SIM_SIM_NETWORK_H
#define TOOLS_SIM_SIM_NETWORK_H

#include "report/json.h"
#include "report/options.h"
#include "sim/once.h"

#define SIM_NETWORK_OPTIONS 17u

struct sim_network {
	/* values as given */
	const char *file, *delay, *uplink_delay, *grain;
	double gbps, server_gbps, oversubscribe;
	uint64_t nics, mtu, credits, active_chunks;
	int model, order, place;
	bool cut_through;
	/* options that contradict --topology */
	bool gbps_given, server_gbps_given, oversubscribe_given, delay_given, uplink_delay_given, nics_given;
	/* parsed */
	struct topology *topology; /* from the file; NULL: made for each plan */
	struct topology_spec spec;
	uint64_t grain_ns; /* rates may lag behind changes of flows for this long (sim/network.h); 0: they are exact */
};

/* Sets the defaults and fills the first options of the table; returns their number. */
size_t sim_tool_network_options(struct sim_network *network, struct option_spec *options);

/* The options from this one on, so many of them, describe a topology. */
#define SIM_TOPOLOGY_FIRST 1u
#define SIM_TOPOLOGY_COUNT 6u

/* Returns -1 to go on; otherwise the exit status, after printing the error. */
int sim_tool_network_take(struct sim_network *network, const char *command);
void sim_tool_network_fini(struct sim_network *network);

/* The hosts of this many workers in the topology of the file. */
ESP_CHECKED enum esp_status sim_tool_network_place(const struct sim_network *network, uint32_t workers,
                                                   uint32_t *out_place, struct error *err);

/* Simulates the plan; calls message (unless NULL) for every message. */
ESP_CHECKED enum esp_status sim_tool_network_run(const struct sim_network *network, const struct plan *plan,
                                                 void (*message)(void *user, const struct cluster_message *message),
                                                 void *user, struct once_result *out, struct error *err);

/* Puts keys that describe the network. */
void sim_tool_network_json(const struct sim_network *network, struct json *json);
/* Puts an object: the bytes on each class of links. */
void sim_tool_bytes_json(const uint64_t *class_bytes, struct json *json);

#endif
