/*
 * main.c - the espalier command: finds the subcommand and hands over.
 */
#include <stdio.h>
#include <string.h>

#include "base/word.h"
#include "cli/cli.h"
#include "espalier/espalier.h"

static const struct cli_command *const commands[] = {
	&cli_bench,
	&cli_conf,
	&cli_demo,
	&cli_diagnose,
	&cli_doctor,
	&cli_hub,
	&cli_lab,
	&cli_plan,
	&cli_probe,
	&cli_run,
	&cli_sched,
	&cli_sim,
	&cli_status,
	&cli_switch,
	&cli_topology,
	&cli_trace,
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const char *command_name_at(const void *list, size_t index)
{
	(void)list;
	return index < COMMAND_COUNT ? commands[index]->name : NULL;
}

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: espalier COMMAND [options]\n\n"
	      "Trains models along the network that you have: communication for distributed training.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
	fputs("  help        explains a command: espalier help plan, espalier help plan make\n\n"
	      "options:\n"
	      "  -h, --help     this text\n"
	      "  -V, --version  the version\n\n"
	      "exit status: 0 done; 1 the thing asked about is not so, or the work failed; 2 wrong usage\n",
	      out);
}

static int unknown_command(const char *name)
{
	const char *near = word_nearest(name, command_name_at, NULL);
	if (near)
		return complain_usage("unknown command '%s'; did you mean '%s'?", name, near);
	return complain_usage("unknown command '%s'; see espalier --help", name);
}

static int unexpected(const char *word)
{
	return complain_usage("unexpected argument '%s'; see espalier --help", word);
}

/* espalier help plan make is espalier plan make --help. */
static int help(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stdout);
		return EXIT_OK;
	}
	const struct cli_command *command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	if (argc - 2 > command->depth)
		return unexpected(argv[2 + command->depth]);
	char ask[] = "--help";
	char *words[CLI_DEPTH_MAX + 3] = {NULL};
	for (int i = 1; i < argc; i++)
		words[i - 1] = argv[i];
	words[argc - 1] = ask;
	return command->run(argc, words);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return help(argc - 1, argv + 1);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		if (argc > 2)
			return unexpected(argv[2]);
		printf("espalier %s\n", esp_version());
		return EXIT_OK;
	}
	const struct cli_command *command = find_command(name);
	return command ? command->run(argc - 1, argv + 1) : unknown_command(name);
}

int main(int argc, char **argv)
{
	int status = dispatch(argc, argv);
	/* A full disk or a closed pipe must not look like success. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_OK)
		status = complain("cannot write to the standard output");
	return status;
}
