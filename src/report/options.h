/*
 * options.h - the options of a subcommand, as a table.
 *
 * The table says where each value goes; parsing, bounds, error messages and the --help
 * text follow from it. Every subcommand has --help (-h) without naming it.
 *
 *   static int run(int argc, char **argv)
 *   {
 *   	uint64_t ranks = 8, bytes = 1 << 20;
 *   	bool json = false;
 *   	int kind = 0;
 *   	static const char *const kinds[] = {"ring", "tree", NULL};
 *   	const struct cli_option options[] = {
 *   		{"ranks", 'n', CLI_U64, &ranks, "N", "number of ranks (default 8)", .min = 1, .max = 16384},
 *   		{"bytes", 'b', CLI_BYTES, &bytes, "BYTES", "size of the buffer (default 1M)"},
 *   		{"kind", 'k', CLI_CHOICE, &kind, "KIND", "kind of plan", .choices = kinds},
 *   		{"json", 0, CLI_FLAG, &json, NULL, "print JSON"},
 *   		{0},
 *   	};
 *   	const struct cli_usage usage = {"plan", "[FILE]", "Makes and checks plans.", options, 0, 1};
 *   	int exit_status = cli_parse(&usage, &argc, argv);
 *   	if (exit_status >= 0)
 *   		return exit_status;
 *   	... argv[1 .. argc-1] are the arguments that are not options ...
 *   }
 *
 * Accepted: --name value, --name=value, -n value, -nvalue, flags together (-ab); options
 * and arguments in any order; `--` ends the options; `-` alone is an argument. Names are
 * written out: a shortened one would change its meaning with the next option that is added.
 * A choice may be written in any case, with or without its dashes ("AllReduce", "all_to_all").
 * An option given twice: the last one counts.
 */
#ifndef REPORT_OPTIONS_H
#define REPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_kind {
	CLI_FLAG = 1, /* bool *: set to true             */
	CLI_U64,      /* uint64_t *                      */
	CLI_BYTES,    /* uint64_t *: 4096, 64K, 1G       */
	CLI_DOUBLE,   /* double *                        */
	CLI_STRING,   /* const char **: borrows from argv */
	CLI_CHOICE,   /* int *: index into choices       */
};

struct cli_option {
	const char *name; /* without the dashes; NULL ends the table */
	char short_name;  /* 0: none */
	enum cli_kind kind;
	void *out;           /* keeps what it holds (the default) unless the option is given */
	const char *metavar; /* what stands for the value in the help text; NULL for flags */
	const char *help;
	uint64_t min, max;          /* CLI_U64 and CLI_BYTES; max 0: no bound */
	const char *const *choices; /* CLI_CHOICE; ends with NULL */
	bool *given;                /* set to true when the option stands there; NULL: nobody asks */
};

struct cli_usage {
	const char *command;   /* as typed after "espalier", such as "plan check" */
	const char *arguments; /* "[FILE]"; "" for none */
	const char *about;     /* a sentence or a paragraph for --help */
	const struct cli_option *options;
	int min_arguments;
	int max_arguments; /* -1: any number */
};

/*
 * Parses argv[1 ..], writes the options' values and leaves the plain arguments in
 * argv[1 .. *argc-1], in their order. Returns -1 to go on, otherwise the exit status to
 * return at once: CLI_EXIT_OK after --help, CLI_EXIT_USAGE after a mistake, which has
 * been said on stderr.
 */
int cli_parse(const struct cli_usage *usage, int *argc, char **argv) __attribute__((warn_unused_result));

/* The text of --help. */
void cli_print_help(const struct cli_usage *usage, FILE *out);

#endif
