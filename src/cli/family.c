#include "cli/family.h"

#include <stdio.h>
#include <string.h>

#include "base/word.h"

static const char *name_at(const void *list, size_t index)
{
	const struct cli_family *family = list;

	return index < family->count ? family->commands[index]->name : NULL;
}

static const char *name_of(const struct cli_family *family)
{
	return family->name ? family->name : "";
}

static void print_help(const struct cli_family *family, FILE *out)
{
	int width = 8;

	for (size_t i = 0; i < family->count; i++) {
		int length = (int)strlen(family->commands[i]->name);

		width = length > width ? length : width;
	}
	fprintf(out, "usage: %s%s%s COMMAND [options]\n\n%s\ncommands:\n", complain_program(), family->name ? " " : "",
	        name_of(family), family->about);
	for (size_t i = 0; i < family->count; i++)
		fprintf(out, "  %-*s  %s\n", width, family->commands[i]->name, family->commands[i]->summary);
	fprintf(out, "\n%s", family->more);
}

/* The name that a command has now; NULL: it was never here. */
static const char *moved_to(const struct cli_family *family, const char *name)
{
	for (const struct cli_moved *moved = family->moved; moved && moved->name; moved++) {
		if (strcmp(moved->name, name) == 0)
			return moved->now;
	}
	return NULL;
}

int cli_family_run(const struct cli_family *family, int argc, char **argv)
{
	if (argc < 2) {
		print_help(family, stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(family, stdout);
		return EXIT_OK;
	}
	for (size_t i = 0; i < family->count; i++) {
		if (strcmp(family->commands[i]->name, argv[1]) == 0)
			return family->commands[i]->run(argc - 1, argv + 1);
	}
	const char *near = word_nearest(argv[1], name_at, family), *now = moved_to(family, argv[1]);
	const char *colon = family->name ? ": " : "", *blank = family->name ? " " : "";
	if (now)
		return complain_usage("%s%s'%s' is now the command %s", name_of(family), colon, argv[1], now);
	if (near)
		return complain_usage("%s%sunknown command '%s'; did you mean '%s'?", name_of(family), colon, argv[1], near);
	return complain_usage("%s%sunknown command '%s'; see %s%s%s --help", name_of(family), colon, argv[1],
	                      complain_program(), blank, name_of(family));
}
