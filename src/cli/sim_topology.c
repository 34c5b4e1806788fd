/*
 * sim_topology.c - espalier sim topology: a topology as text, to begin with or to look at.
 */
#include <stdio.h>

#include "cli/sim.h"
#include "tools/sim/sim_network.h"

#define COMMAND "sim topology"

static int print(const struct topology *topology)
{
	struct error err = {0};

	return topology_print(topology, stdout, &err) == ESP_OK ? EXIT_OK : complain(COMMAND ": %s", err.text);
}

static int make(const struct sim_network *network, uint64_t hosts, uint64_t racks)
{
	struct topology_spec spec = network->spec;
	struct topology *topology;
	struct error err = {0};

	spec.hosts = (uint32_t)hosts;
	spec.racks = (uint32_t)racks;
	enum esp_status status = topology_make(&spec, &topology, &err);
	if (status != ESP_OK)
		return status == ESP_ENOMEM ? complain(COMMAND ": %s", err.text) : complain_usage(COMMAND ": %s", err.text);
	int exit_status = print(topology);
	topology_close(topology);
	return exit_status;
}

static int run(int argc, char **argv)
{
	struct sim_network network;
	struct option_spec all[SIM_NETWORK_OPTIONS], options[SIM_NETWORK_OPTIONS + 4];
	uint64_t hosts = 0, racks = 1;
	size_t count = 0;

	sim_tool_network_options(&network, all);
	options[count++] = (struct option_spec){
		"hosts", 0, OPTION_U64, &hosts, "N", "hosts in all", .min = 1, .max = TOPOLOGY_VERTICES_MAX};
	options[count++] = (struct option_spec){"racks",    0,
	                                        OPTION_U64, &racks,
	                                        "N",        "racks that they stand in, in order (default 1)",
	                                        .min = 1,   .max = TOPOLOGY_VERTICES_MAX};
	for (size_t i = SIM_TOPOLOGY_FIRST; i < SIM_TOPOLOGY_FIRST + SIM_TOPOLOGY_COUNT; i++) {
		if (all[i].out != &network.server_gbps) /* no host is a server here */
			options[count++] = all[i];
	}
	options[count] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"[FILE]",
		"Prints a topology to begin with, made of a few numbers; or, with FILE, reads that one and prints it as it\n"
		"was understood.\n\n"
		"  espalier sim topology --hosts 64 --racks 8 --gbps 25 --oversubscribe 4 > hall.topology",
		options,
		0,
		1};
	int exit_status = options_parse(&usage, &argc, argv);
	if (exit_status >= 0)
		return exit_status;
	network.file = argc > 1 ? argv[1] : NULL;
	if (!network.file && hosts == 0)
		return complain_usage(COMMAND ": how many hosts? Give --hosts N, or a FILE");
	exit_status = sim_tool_network_take(&network, COMMAND);
	if (exit_status < 0)
		exit_status = network.topology ? print(network.topology) : make(&network, hosts, racks);
	sim_tool_network_fini(&network);
	return exit_status;
}

const struct cli_command cli_sim_topology = {"topology", "prints a topology to begin with, or as it was understood",
                                             run};
