/*
 * sim.c - espalier sim: finds its subcommand and hands over.
 */
#include "cli/sim.h"

#include <stdio.h>
#include <string.h>

#include "base/word.h"

static const struct cli_command *const commands[] = {
	&cli_sim_advise,
	&cli_sim_models,
	&cli_sim_money,
	&cli_sim_paper,
	&cli_sim_plan,
	&cli_sim_record,
	&cli_sim_run,
	&cli_sim_sweep,
	&cli_sim_topology,
	&cli_sim_traces,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const char *name_at(const void *list, size_t index)
{
	(void)list;
	return index < COMMAND_COUNT ? commands[index]->name : NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: espalier sim COMMAND [options]\n\n"
	      "What training would take on networks and accelerators that are not there: Espalier's own plans, run by\n"
	      "its own executor in virtual time.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	fputs("\nexit status: 0 done; 1 the work failed, or a file is malformed; 2 wrong usage\n", out);
}

static int unknown_command(const char *name)
{
	const char *near = word_nearest(name, name_at, NULL);

	if (near)
		return cli_usage_error("sim: unknown command '%s'; did you mean '%s'?", name, near);
	return cli_usage_error("sim: unknown command '%s'; see espalier sim --help", name);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return CLI_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(stdout);
		return CLI_EXIT_OK;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i]->name, argv[1]) == 0)
			return commands[i]->run(argc - 1, argv + 1);
	}
	return unknown_command(argv[1]);
}

const struct cli_command cli_sim = {"sim", "says what training would take on other networks and accelerators", run};
