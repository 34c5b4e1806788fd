/*
 * plan.c - espalier plan: finds its subcommand and hands over.
 */
#include "cli/plan.h"

#include "cli/family.h"

static const struct cli_command *const commands[] = {
	&cli_plan_make, &cli_plan_check, &cli_plan_show, &cli_plan_cost, &cli_plan_draw,
};

static const struct cli_moved moved[] = {{"table1", "espalier-study table1"}, {0}};

static const struct cli_family family = {
	.name = "plan",
	.about = "A plan says, for every chunk of a buffer, which nodes send it where, add and hand back.\n"
	         "Ring, tree, parameter server and the two-level hierarchy are plans; these make, check, compare\n"
	         "and draw them.\n",
	.more = "examples:\n"
	        "  espalier plan make ring --nodes 4 | espalier plan check -\n"
	        "  espalier plan cost --nodes 64 --racks 8 --bytes 64M\n"
	        "  espalier plan cost --nodes 8 --bytes 16M --switch-link 4x        # does a switch pay, and why\n"
	        "  espalier plan show --planner ring --nodes 4 --explain            # a plan in words\n"
	        "  espalier plan draw --planner two-level --nodes 8 --racks 2 -o two-level.svg\n\n"
	        "exit status: 0 done; 1 the plan is wrong, or the work failed; 2 wrong usage or an unreadable file\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
	.moved = moved,
};

static int run(int argc, char **argv)
{
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_plan = {"plan", "makes, checks, compares and draws plans", run, 1};
