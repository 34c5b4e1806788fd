/*
 * family.h - a command that has commands of its own: espalier plan make, espalier lab up, espalier sim run.
 */
#ifndef CLI_FAMILY_H
#define CLI_FAMILY_H

#include <stddef.h>

#include "cli/cli.h"

/* A command that is now one of another program. */
struct cli_moved {
	const char *name; /* "discover"                */
	const char *now;  /* "espalier-study discover" */
};

struct cli_family {
	const char *name;  /* NULL: the program's own commands             */
	const char *about; /* text of --help before the list of commands */
	const char *more;  /* and behind it                                */
	const struct cli_command *const *commands;
	size_t count;
	const struct cli_moved *moved; /* up to one without a name; NULL: none */
};

/* Hands over to the command that argv[1] names, or says which commands there are, or where the command is now. */
int cli_family_run(const struct cli_family *family, int argc, char **argv);

#endif
