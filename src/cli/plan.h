/*
 * plan.h - espalier plan: its own subcommands, one file each.
 *
 * Each is a struct cli_command whose run() is given argv[0] = its name. All of them leave
 * with 0 when the answer is yes, 1 when a plan is wrong or the work failed, and 2 when the
 * command line makes no sense or a file cannot be read.
 */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli/cli.h"

extern const struct cli_command cli_plan_make, cli_plan_check, cli_plan_show, cli_plan_cost,
	cli_plan_draw;

#endif
