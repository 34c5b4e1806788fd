/*
 * lab_set.c - espalier lab set: another rate, faults, background traffic; and back.
 */
#include <stdio.h>

#include "cli/lab.h"
#include "report/json.h"
#include "report/options.h"
#include "tools/lab/lab_report.h"

#define COMMAND "lab set"

static int report(const char *name)
{
	const struct lab *lab;
	struct error err;
	struct json json;
	enum esp_status status = lab_client_map(name, &lab, &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "name", name);
	status = lab_report_links(lab, &json);
	json_object_end(&json);
	lab_client_unmap(lab);
	return json_fini(&json) == ESP_OK && status == ESP_OK ? EXIT_OK : EXIT_NO;
}

static int run(int argc, char **argv)
{
	static const char *const ways[] = {"both", "from", "to", NULL};
	const char *name = CLIENT_DEFAULT;
	int way = LAB_BOTH_WAYS;
	bool json = false;
	struct error err;
	const struct option_spec options[] = {
		{"direction", 0, OPTION_CHOICE, &way, "WAY", "frames that come from the target, or go to it (default both)",
	     .choices = ways},
		{"name", 0, OPTION_STRING, &name, "NAME", "of the lab (default lab)"},
		{"json", 0, OPTION_FLAG, &json, NULL, "print all links as JSON afterwards"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "TARGET WHAT [VALUE] [WHAT [VALUE]]...",
		"Changes links. TARGET is a host, by name or place (node07, rack1/2); rackN, the uplink of a rack; all, the\n"
		"links of all hosts; racks, all uplinks. Behind it :e1 means one interface. What can be set:\n\n"
		"  rate 200mbit     both ways, at both ends\n"
		"  cut              nothing passes, without an error\n"
		"  loss 1%          of the packets\n"
		"  delay 5ms        one way\n"
		"  jitter 1ms       the delay is so much more or less; the order of packets stays\n"
		"  reorder 5%       of the packets are held back, up to so long:\n"
		"  hold 2ms         (the default)\n"
		"  duplicate 1%     of the packets come twice\n"
		"  corrupt 1%       of the packets have one bit wrong\n"
		"  background 4     TCP flows of others: from this host, or this rack, to other racks\n"
		"  down, up         no carrier, as if the cable were pulled; and back\n"
		"  heal             everything as espalier lab up made it; with all, of uplinks too",
		options, 2, -1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	argv[argc] = NULL;
	enum esp_status status = lab_client_set(name, (enum lab_ways_given)way, argv + 1, &err);
	if (status != ESP_OK)
		return lab_status_of(COMMAND, status, &err);
	return json ? report(name) : EXIT_OK;
}

const struct cli_command cli_lab_set = {"set", "slows, cuts, delays, ... links, and heals them", run};
