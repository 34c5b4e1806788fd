/*
 * lab.c - espalier lab: finds its subcommand and hands over.
 */
#include "cli/lab.h"

#include <stdio.h>
#include <string.h>

#include "base/word.h"

static const struct cli_command *const commands[] = {
	&cli_lab_up,    &cli_lab_run,  &cli_lab_exec, &cli_lab_set,
	&cli_lab_check, &cli_lab_status, &cli_lab_list, &cli_lab_down,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const char *name_at(const void *list, size_t index)
{
	(void)list;
	return index < COMMAND_COUNT ? commands[index]->name : NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: espalier lab COMMAND [options]\n\n"
	      "Racks of hosts inside this machine: network namespaces behind switches, with rates, oversubscribed\n"
	      "uplinks, and links that can be slowed, cut, delayed and made to lose, reorder, double or corrupt\n"
	      "what they carry.\n\n"
	      "commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	fputs("\nexamples:\n"
	      "  espalier lab up --racks 4 --hosts 4 --rate 1gbit --oversubscribe 4\n"
	      "  espalier lab run --place interleaved -- espalier bench allreduce --size 1M:16M\n"
	      "  espalier lab set rack2 rate 200mbit\n"
	      "  espalier lab set node07 delay 5ms loss 1%\n"
	      "  espalier lab down\n\n"
	      "exit status: 0 done; 1 it failed, there is no lab, or what was measured is not what was asked;\n"
	      "2 wrong usage; run and exec: what the command returns\n",
	      out);
}

static int unknown_command(const char *name)
{
	const char *near = word_nearest(name, name_at, NULL);
	if (near)
		return cli_usage_error("lab: unknown command '%s'; did you mean '%s'?", name, near);
	return cli_usage_error("lab: unknown command '%s'; see espalier lab --help", name);
}

int lab_status_of(const char *command, enum esp_status status, const struct error *err)
{
	bool usage = status == ESP_EINVAL || status == ESP_ELIMIT;
	return usage ? cli_usage_error("%s: %s", command, err->text) : cli_fail("%s: %s", command, err->text);
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
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i]->name, argv[1]) == 0)
			return commands[i]->run(argc - 1, argv + 1);
	return unknown_command(argv[1]);
}

const struct cli_command cli_lab = {"lab", "emulates racks of hosts with real links, and runs jobs on them", run};
