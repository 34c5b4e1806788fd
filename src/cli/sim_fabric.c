/*
 * sim_fabric.c - espalier sim fabric: finds its subcommand and hands over.
 */
#include "cli/sim_fabric.h"

#include "cli/family.h"
#include "cli/sim.h"

static const struct cli_command *const commands[] = {&cli_sim_fabric_advise, &cli_sim_fabric_run};

static const struct cli_family family = {
	.name = "sim fabric",
	.about = "Asynchronous training on uneven clusters in virtual time: the scheduler and the gate that run live,\n"
	         "beside synchronous training with a ring allreduce.\n",
	.more = "exit status: 0 done; 1 the work failed; 2 wrong usage\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

static int run(int argc, char **argv)
{
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_sim_fabric = {"fabric", "asynchronous training on uneven clusters: run, advise", run};
