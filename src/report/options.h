/*
 * options.h - the options of a subcommand, as a table.
 *
 * The table says where each value goes; parsing, bounds, error messages and the --help
 * text follow from it. Every subcommand has --help (-h) without naming it. Main thread.
 *
 *   static int run(int argc, char **argv)
 *   {
 *   	uint64_t ranks = 8, bytes = 1 << 20;
 *   	bool json = false;
 *   	int kind = 0;
 *   	static const char *const kinds[] = {"ring", "tree", NULL};
 *   	const struct option_spec options[] = {
 *   		{"ranks", 'n', OPTION_U64, &ranks, "N", "number of ranks (default 8)", .min = 1, .max = 16384},
 *   		{"bytes", 'b', OPTION_BYTES, &bytes, "BYTES", "size of the buffer (default 1M)"},
 *   		{"kind", 'k', OPTION_CHOICE, &kind, "KIND", "kind of plan", .choices = kinds},
 *   		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
 *   		{0},
 *   	};
 *   	const struct options_usage usage = {"plan", "[FILE]", "Makes and checks plans.", options, 0, 1};
 *   	int exit_status = options_parse(&usage, &argc, argv);
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

enum option_kind {
	OPTION_FLAG = 1, /* bool *: set to true */
	OPTION_U64,      /* uint64_t * */
	OPTION_BYTES,    /* uint64_t *: 4096, 64K, 1G */
	OPTION_DOUBLE,   /* double * */
	OPTION_STRING,   /* const char **: borrows from argv */
	OPTION_CHOICE,   /* int *: index into choices */
};

struct option_spec {
	const char *name; /* without the dashes; NULL ends the table */
	char short_name;  /* 0: none */
	enum option_kind kind;
	void *out;           /* keeps its value (the default) unless the option is given */
	const char *metavar; /* stands for the value in the help text; NULL for flags */
	const char *help;
	uint64_t min, max;          /* OPTION_U64 and OPTION_BYTES; max 0: no bound */
	const char *const *choices; /* OPTION_CHOICE; ends with NULL */
	bool *given;                /* set to true when the option is given; may be NULL */
	const char *bare;           /* of a long option: its value where no word follows that can be one; NULL: needed */
};

struct options_usage {
	const char *command;   /* as typed after "espalier", such as "plan check" */
	const char *arguments; /* "[FILE]"; "" for none */
	const char *about;     /* a sentence or a paragraph for --help */
	const struct option_spec *options;
	int min_arguments;
	int max_arguments; /* -1: any number */
};

/*
 * Parses argv[1 ..], writes the options' values and leaves the plain arguments in argv[1 .. *argc-1], in their order.
 * Returns -1 to go on, otherwise the exit status to return at once: EXIT_OK after --help, EXIT_USAGE after a mistake,
 * which it has printed on stderr.
 */
int options_parse(const struct options_usage *usage, int *argc, char **argv) __attribute__((warn_unused_result));

/* Prints the text of --help. */
void options_print_help(const struct options_usage *usage, FILE *out);

#endif
