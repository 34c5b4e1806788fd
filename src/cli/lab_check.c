/*
 * lab_check.c - espalier lab check: measures the links of a lab beside what was asked.
 */
#include <stdio.h>

#include "cli/lab.h"
#include "report/options.h"
#include "tools/lab/lab_report.h"

#define COMMAND "lab check"

static enum esp_status print(const struct lab *lab, const struct lab_checks *checks, bool as_json)
{
	struct json json;
	if (!as_json)
		return lab_report_checks(lab, checks, NULL);
	json_init(&json, stdout);
	json_object_begin(&json);
	lab_json_config(&json, lab);
	enum esp_status status = lab_report_checks(lab, checks, &json);
	json_object_end(&json);
	enum esp_status written = json_fini(&json);
	return status == ESP_OK ? written : status;
}

static int check(const char *name, bool all, double seconds, bool json)
{
	struct lab_checks checks = {0};
	const struct lab *lab = NULL;
	struct error err;
	enum esp_status status = lab_client_map(name, &lab, &err);
	if (status == ESP_OK)
		status = lab_client_check(name, all, seconds, -1, lab_checks_add, &checks, &err);
	int exit_status = status == ESP_OK ? EXIT_OK : lab_status_of(COMMAND, status, &err);
	if (status == ESP_OK && checks.count == 0)
		exit_status = complain(COMMAND ": nothing can be measured: there is one host, or links are cut or down");
	else if (status == ESP_OK && print(lab, &checks, json) != ESP_OK)
		exit_status = complain(COMMAND ": cannot write to the standard output");
	else if (status == ESP_OK && lab_checks_wrong(&checks))
		exit_status = EXIT_NO;
	lab_checks_fini(&checks);
	lab_client_unmap(lab);
	return exit_status;
}

static int run(int argc, char **argv)
{
	const char *name = CLIENT_DEFAULT;
	bool json = false, all = false;
	double seconds = 1;
	const struct option_spec options[] = {
		{"all", 0, OPTION_FLAG, &all, NULL, "every link, one after the other (default: one of each class)"},
		{"seconds", 0, OPTION_DOUBLE, &seconds, "SECONDS", "for each rate (default 1)"},
		{"name", 0, OPTION_STRING, &name, "NAME", "of the lab (default lab)"},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Measures rates and latencies and shows them beside what was asked: of a host's link by one TCP flow within\n"
		"the rack, of an uplink by flows from all hosts of a rack to those of the next. Rates count Ethernet\n"
		"frames; a latency is a datagram's time there and back. A rate that is off is measured up to three times.\n"
		"Returns 1 if one of them is off by more than 5 %. Jobs and background traffic in the lab disturb it.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (!(seconds >= 0.01 && seconds <= 3600))
		return complain_usage(COMMAND ": --seconds is a number from 0.01 to 3600");
	return check(name, all, seconds, json);
}

const struct cli_command cli_lab_check = {"check", "measures links beside what was asked", run};
