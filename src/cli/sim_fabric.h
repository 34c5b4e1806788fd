/*
 * sim_fabric.h - espalier sim fabric: its own subcommands, one file each.
 */
#ifndef CLI_SIM_FABRIC_H
#define CLI_SIM_FABRIC_H

#include "cli/cli.h"

extern const struct cli_command cli_sim_fabric_advise, cli_sim_fabric_run;

#endif
