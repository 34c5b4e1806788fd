/*
 * sim.h - espalier sim: its own subcommands, one file each.
 */
#ifndef CLI_SIM_H
#define CLI_SIM_H

#include <stdbool.h>

#include "cli/cli.h"

extern const struct cli_command cli_sim_advise, cli_sim_fabric, cli_sim_models, cli_sim_plan, cli_sim_record,
	cli_sim_run, cli_sim_sweep, cli_sim_topology, cli_sim_traces;

/* espalier sim run --collective: a collective alone, without training around it. Is it meant? */
extern const struct cli_command cli_sim_collective;
bool sim_collective_is_meant(int argc, char **argv);

#endif
