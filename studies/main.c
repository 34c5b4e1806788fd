/*
 * main.c - the program espalier-study: finds its subcommand and hands over.
 */
#include <stdio.h>

#include "cli/family.h"
#include "studies/studies.h"

static const struct cli_command *const commands[] = {
	&study_discover,
	&study_money,
	&study_netop,
	&study_table1,
};

static const struct cli_family family = {
	.about = "Tables and figures of papers on training over networks, computed by Espalier's planners, checker and "
	         "simulator.\n",
	.more = "exit status: 0 done; 1 the work failed; 2 wrong usage\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int main(int argc, char **argv)
{
	complain_as("espalier-study");
	int status = cli_family_run(&family, argc, argv);
	/* A full disk or a closed pipe must not look like success. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_OK)
		status = complain("cannot write to the standard output");
	return status;
}
