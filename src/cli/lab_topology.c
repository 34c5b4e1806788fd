/*
 * lab_topology.c - espalier lab topology: what a lab really is, as a topology file.
 */
#include <stdio.h>

#include "base/units.h"
#include "cli/lab.h"
#include "report/options.h"

#define COMMAND "lab topology"

/* " under X rate 1gbit delay 50us": as it is set now. A delay that differs by direction is shown as its mean. */
static void print_link(const struct lab *lab, uint32_t index, const char *under)
{
	const struct lab_settings *set = &lab_link(lab, index)->set;
	uint64_t delay = (set->faults[LAB_FROM].delay_ns + set->faults[LAB_TO].delay_ns) / 2;
	char text[UNITS_TEXT];

	printf(" under %s rate %s", under, units_format_rate(set->rate, text));
	if (delay > 0)
		printf(" delay %s", units_format_time(delay, text));
	printf("\n");
}

static void print_topology(const struct lab *lab, uint32_t rail)
{
	char rack_name[LAB_HOST_TEXT];

	printf("topology 1\n# the lab %s, interface e%u, as it really is\n", lab->config.name, rail);
	if (lab_has_core(lab))
		printf("switch core\n");
	for (uint32_t rack = 0; rack < lab->config.racks; rack++) {
		lab_space_name(lab, lab_rack_space(lab, rack), rack_name);
		printf("switch %s", rack_name);
		if (lab_has_core(lab))
			print_link(lab, lab_uplink(lab, rack, rail), "core");
		else
			printf("\n");
		for (uint32_t host = 0; host < lab->host_count; host++) {
			if (lab_host(lab, host)->rack != rack)
				continue;
			printf("host %s", lab_host(lab, host)->name);
			print_link(lab, lab_host_link(lab, host, rail), rack_name);
		}
	}
}

static int run(int argc, char **argv)
{
	const char *name = CLIENT_DEFAULT;
	const struct lab *lab;
	uint64_t rail = 0;
	struct error err;
	const struct option_spec options[] = {
		{"name", 0, OPTION_STRING, &name, "NAME", "of the lab (default lab)"},
		{"interface", 0, OPTION_U64, &rail, "N", "the network of interface eN (default 0)", .max = LAB_RAILS_MAX - 1},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Prints racks, hosts and the rates of their links as a topology file: what espalier probe should find, and\n"
		"what ESP_TOPOLOGY, espalier run --topology and espalier sim take.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	enum esp_status status = lab_client_map(name, &lab, &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	int exit_status = EXIT_OK;
	if (rail < lab->config.rails)
		print_topology(lab, (uint32_t)rail);
	else
		exit_status =
			complain_usage(COMMAND ": hosts of this lab have the interfaces e0 to e%u", lab->config.rails - 1);
	lab_client_unmap(lab);
	return exit_status;
}

const struct cli_command cli_lab_topology = {"topology", "prints what the lab really is, as a topology file", run};
