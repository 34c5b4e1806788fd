/*
 * sim.c - espalier sim: finds its subcommand and hands over.
 */
#include "cli/sim.h"

#include "cli/family.h"

static const struct cli_command *const commands[] = {
	&cli_sim_advise,
	&cli_sim_fabric,
	&cli_sim_models,
	&cli_sim_plan,
	&cli_sim_record,
	&cli_sim_run,
	&cli_sim_sweep,
	&cli_sim_topology,
	&cli_sim_traces,
};

static const struct cli_moved moved[] = {
	{"discover", "espalier-study discover"},
	{"money", "espalier-study money"},
	{"paper", "espalier-study netop"},
	{0},
};

static const struct cli_family family = {
	.name = "sim",
	.about = "What training would take on networks and accelerators that are not there: Espalier's own plans, run by\n"
	         "its own executor in virtual time.\n",
	.more = "exit status: 0 done; 1 the work failed, or a file is malformed; 2 wrong usage\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
	.moved = moved,
};

static int run(int argc, char **argv)
{
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_sim = {"sim", "says what training would take on other networks and accelerators", run, 1};
