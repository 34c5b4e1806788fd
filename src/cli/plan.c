/*
 * plan.c - espalier plan: finds its subcommand and hands over.
 */
#include "cli/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/word.h"

static const struct cli_command *const commands[] = {
	&cli_plan_make, &cli_plan_check, &cli_plan_show, &cli_plan_cost, &cli_plan_table1, &cli_plan_draw,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const char *name_at(const void *list, size_t index)
{
	(void)list;
	return index < COMMAND_COUNT ? commands[index]->name : NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: espalier plan COMMAND [options]\n\n"
	      "A plan says, for every chunk of a buffer, who sends it to whom, who adds and who hands back.\n"
	      "Ring, tree, parameter server and the two-level hierarchy are plans; these make, check, compare\n"
	      "and draw them.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	fputs("\nexamples:\n"
	      "  espalier plan make ring --nodes 4 | espalier plan check -\n"
	      "  espalier plan cost --nodes 64 --racks 8 --bytes 64M\n"
	      "  espalier plan draw --planner two-level --nodes 8 --racks 2 -o two-level.svg\n\n"
	      "exit status: 0 done; 1 the plan is wrong, or the work failed; 2 wrong usage or an unreadable file\n",
	      out);
}

static int unknown_command(const char *name)
{
	const char *near = word_nearest(name, name_at, NULL);

	if (near)
		return cli_usage_error("plan: unknown command '%s'; did you mean '%s'?", name, near);
	return cli_usage_error("plan: unknown command '%s'; see espalier plan --help", name);
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

const struct cli_command cli_plan = {"plan", "makes, checks, compares and draws plans", run};
