/*
 * lab.c - espalier lab: finds its subcommand and hands over.
 */
#include "cli/lab.h"

#include "cli/family.h"

static const struct cli_command *const commands[] = {
	&cli_lab_up,    &cli_lab_run,  &cli_lab_exec, &cli_lab_set,
	&cli_lab_check, &cli_lab_status, &cli_lab_topology, &cli_lab_list, &cli_lab_down,
};

static const struct cli_family family = {
	.name = "lab",
	.about = "Racks of hosts inside this machine: network namespaces behind switches, with rates, oversubscribed\n"
	         "uplinks, and links that can be slowed, cut, delayed and made to lose, reorder, double or corrupt\n"
	         "what they carry.\n",
	.more = "examples:\n"
	        "  espalier lab up --racks 4 --hosts 4 --rate 1gbit --oversubscribe 4\n"
	        "  espalier lab run --place interleaved -- espalier bench allreduce --size 1M:16M\n"
	        "  espalier lab set rack2 rate 200mbit\n"
	        "  espalier lab set node07 delay 5ms loss 1%\n"
	        "  espalier lab down\n\n"
	        "exit status: 0 done; 1 it failed, there is no lab, or what was measured is not what was asked;\n"
	        "2 wrong usage; run and exec: what the command returns\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int lab_status_of(const char *command, enum esp_status status, const struct error *err)
{
	bool usage = status == ESP_EINVAL || status == ESP_ELIMIT;
	return usage ? complain_usage("%s: %s", command, err->text) : complain("%s: %s", command, err->text);
}

static int run(int argc, char **argv)
{
	return cli_family_run(&family, argc, argv);
}

const struct cli_command cli_lab = {"lab", "emulates racks of hosts with real links, and runs jobs on them", run, 1};
