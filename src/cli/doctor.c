/*
 * doctor.c - espalier doctor: is this host, and the network between hosts, fit for a job? And what to do if not.
 *
 * Alone it looks at this host. Started as several ranks (espalier run, torchrun) it also tries every way that a job
 * would take between them, and rank 0 prints what all have found.
 */
#include <stdlib.h>

#include "base/status.h"
#include "cli/cli.h"
#include "report/options.h"
#include "tools/doctor/doctor_facts.h"
#include "tools/doctor/doctor_job.h"

#define RANKS_MAX 16384u

static bool look_here(uint32_t ranks, struct doctor_findings *out)
{
	struct doctor_facts *facts = malloc(sizeof(*facts));
	if (!facts)
		return false;
	doctor_facts_collect(facts, ranks, ranks);
	doctor_judge(facts, out);
	free(facts);
	return true;
}

static int run(int argc, char **argv)
{
	uint64_t ranks = 1;
	bool json = false, local = false;
	const struct option_spec options[] = {
		{"ranks", 'n', OPTION_U64, &ranks, "N", "ranks that are to run on this host (default 1)", .min = 1,
	     .max = RANKS_MAX},
		{"local", 0, OPTION_FLAG, &local, NULL, "look at this host only, even as a rank of a job"},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		"doctor",
		"",
		"Looks at what a job would meet on this host: network interfaces, names, ports, firewall, TCP's limits,\n"
		"cores, memory, limits of the process, clock. Started as the ranks of a job it also tries the way from\n"
		"each host to each other one, and finds firewalls, missing routes, MTU black holes and clocks that differ:\n\n"
		"  espalier doctor\n"
		"  espalier run --hosts a,b,c -- espalier doctor\n\n"
		"Each line is OK, WARN or FAIL, and says what to do. Returns 1 if there is a FAIL.",
		options,
		0,
		0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct doctor_findings findings = {0};
	bool in_job = !local && doctor_is_launched();
	if (in_job && !doctor_run_job(&findings))
		return EXIT_OK; /* rank 0 has the word */
	if (!in_job && !look_here((uint32_t)ranks, &findings))
		return complain("doctor: no memory");
	enum esp_status printed = json ? doctor_print_json(&findings, stdout) : doctor_print(&findings, stdout);
	bool failed = doctor_worst(&findings) == DOCTOR_FAIL || findings.no_memory;
	doctor_findings_fini(&findings);
	if (printed != ESP_OK)
		return complain("doctor: %s", status_text(printed));
	return failed ? EXIT_NO : EXIT_OK;
}

const struct cli_command cli_doctor = {"doctor", "checks this host, and the network between hosts", run};
