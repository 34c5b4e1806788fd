/*
 * sim_network.h - the options that say what network a plan is run on, shared by the commands that run one, and the way
 * from them to a result.
 *
 *     struct sim_network network;
 *     size_t count = sim_network_options(&network, options);
 *     ... more options of one's own, options_parse() ...
 *     int exit_status = sim_network_take(&network, COMMAND);           checks, and reads the topology's file
 *     status = sim_network_run(&network, plan, NULL, NULL, &result, err);
 *     sim_network_fini(&network);
 */
#ifndef TOOLS_SIM_SIM_NETWORK_H
#define TOOLS_SIM_SIM_NETWORK_H

#include "report/json.h"
#include "report/options.h"
#include "sim/once.h"

#define SIM_NETWORK_OPTIONS 17u

struct sim_network {
	/* as it was typed */
	const char *file, *delay, *uplink_delay, *grain;
	double gbps, server_gbps, oversubscribe;
	uint64_t nics, mtu, credits, active_chunks;
	int model, order, place;
	bool cut_through;
	bool gbps_given, server_gbps_given, oversubscribe_given, delay_given, uplink_delay_given, nics_given; /* what a topology says */
	/* as it was taken */
	struct topology *topology; /* of the file; NULL: made for each plan */
	struct topology_spec spec;
	uint64_t grain_ns; /* 0: rates are exact */
};

/* Sets the defaults and fills the first options of the table; returns how many. */
size_t sim_network_options(struct sim_network *network, struct option_spec *options);

/* The first so many of them make a topology. */
#define SIM_TOPOLOGY_FIRST 1u
#define SIM_TOPOLOGY_COUNT 6u

/* Returns -1 to go on, or the exit status after having said what is wrong. */
int sim_network_take(struct sim_network *network, const char *command);
void sim_network_fini(struct sim_network *network);

/* The hosts of so many workers on the topology of the file. */
ESP_CHECKED enum esp_status sim_network_place(const struct sim_network *network, uint32_t workers, uint32_t *out_place,
                                              struct error *err);

/* Runs the plan; message (or NULL) is told of every message. */
ESP_CHECKED enum esp_status sim_network_run(const struct sim_network *network, const struct plan *plan,
                                            void (*message)(void *user, const struct cluster_message *message), void *user,
                                            struct once_result *out, struct error *err);

/* Keys of an object that say what the network was. */
void sim_network_json(const struct sim_network *network, struct json *json);
/* An object: what went over each class of links. */
void sim_bytes_json(const uint64_t *class_bytes, struct json *json);

#endif
