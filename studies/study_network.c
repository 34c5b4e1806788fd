/*
 * study_network.c - espalier-study discover network: a made-up region, for other tools: its topology, the truth,
 * readings.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/outfile.h"
#include "network/topo/survey.h"
#include "studies/study_discover.h"

#define COMMAND "discover network"
#define NAME_ROOM 16u /* "vm4095" */

struct given {
	struct sim_discover common;
	const char *racks, *survey;
	bool quiet;
};

static enum esp_status write_racks(const struct region *region, const char *path, struct error *err)
{
	struct outfile out;
	enum esp_status status = outfile_open(&out, path, err);

	if (status != ESP_OK)
		return status;
	for (uint32_t i = 0; i < region->spec.machines; i++) {
		const uint32_t *place = region->truth.place + (size_t)i * region->truth.levels;

		fprintf(out.file, "vm%02u", i);
		for (uint32_t level = REGION_DATACENTER; level <= REGION_RACK; level++)
			fprintf(out.file, "%c%s%u", level == REGION_DATACENTER ? ' ' : '/',
			        region_level_name((enum region_level)level), place[level]);
		putc('\n', out.file);
	}
	return outfile_commit(&out, err);
}

static enum esp_status read_survey(const struct given *given, const struct discover_case *made, struct survey *survey,
                                   struct error *err)
{
	uint64_t seed = given->common.seed;
	double level;
	enum esp_status status = sim_discover_level(&given->common, (enum reading_noise)given->common.noise, &level, err);

	if (status == ESP_OK)
		status = reading_latency(&made->region, &made->crowd, (enum reading_noise)given->common.noise, level, seed,
		                         &survey->matrices[SURVEY_LATENCY], err);
	if (status == ESP_OK)
		status = reading_bandwidth(&made->region, &made->crowd, seed, &survey->matrices[SURVEY_INVERSE_BANDWIDTH], err);
	return status;
}

static enum esp_status name_hosts(uint32_t machines, struct survey *survey, struct error *err)
{
	char *text = calloc(machines, NAME_ROOM);
	const char **names = calloc(machines, sizeof(*names));
	enum esp_status status = ESP_ENOMEM;

	if (text && names) {
		for (uint32_t i = 0; i < machines; i++) {
			snprintf(text + (size_t)i * NAME_ROOM, NAME_ROOM, "vm%02u", i);
			names[i] = text + (size_t)i * NAME_ROOM;
		}
		status = survey_init(survey, names, machines, err);
	} else {
		(void)error_set(err, status, "no memory for %u names", machines);
	}
	free(names);
	free(text);
	return status;
}

static enum esp_status write_survey(const struct given *given, const struct discover_case *made, struct error *err)
{
	struct survey survey = {0};
	struct outfile out;
	enum esp_status status = name_hosts(given->common.spec.machines, &survey, err);

	if (status == ESP_OK)
		status = read_survey(given, made, &survey, err);
	if (status == ESP_OK)
		status = outfile_open(&out, given->survey, err);
	if (status == ESP_OK) {
		status = survey_print(&survey, out.file, err);
		if (status == ESP_OK)
			status = outfile_commit(&out, err);
		else
			outfile_abandon(&out);
	}
	survey_fini(&survey);
	return status;
}

static enum esp_status make(const struct given *given, struct error *err)
{
	struct discover_case made;
	struct topology *topology = NULL;
	enum esp_status status = discover_open(&made, &given->common.spec, given->common.seed, given->common.seed, err);

	if (status != ESP_OK)
		return status;
	status = region_topology(&made.region, given->quiet ? NULL : made.crowd.host_share,
	                         given->quiet ? NULL : made.crowd.flows, &topology, err);
	if (status == ESP_OK)
		status = topology_print(topology, stdout, err);
	if (status == ESP_OK && given->racks)
		status = write_racks(&made.region, given->racks, err);
	if (status == ESP_OK && given->survey)
		status = write_survey(given, &made, err);
	topology_close(topology);
	discover_close(&made);
	return status;
}

static int run(int argc, char **argv)
{
	struct given given = {.common = SIM_DISCOVER_INIT(SIM_SETTING_JOB)};
	struct error err = {0};
	const struct option_spec options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		{"racks-file", 0, OPTION_STRING, &given.racks, "FILE",
	     "write where each machine stands: the truth, as a rack map"},
		{"survey", 0, OPTION_STRING, &given.survey, "FILE",
	     "write what probes would read, for espalier probe --matrix"},
		{"quiet", 'q', OPTION_FLAG, &given.quiet, NULL, "without other people's traffic on the links"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Prints a made-up region as a topology, with the machines of a job in it and other people's traffic, for\n"
		"espalier sim run --topology.\n\n"
		"  espalier-study discover network --setting job > job.topology\n"
		"  espalier sim run --collective allreduce --topology job.topology --mechanism flat",
		options,
		0,
		0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);

	if (exit_status < 0 && given.common.json)
		exit_status = complain_usage(COMMAND ": a topology is text; there is no --json of it");
	if (exit_status >= 0)
		return exit_status;
	return complain_end(COMMAND, make(&given, &err), &err);
}

const struct cli_command cli_discover_network = {"network", "prints a made-up region as a topology", run};
