/*
 * study_discover.c - espalier-study discover: finds its subcommand and hands over; the options that they share.
 */
#include "studies/study_discover.h"

#include <stdio.h>

#include "cli/family.h"
#include "studies/studies.h"

const char *const sim_discover_settings[] = {"region", "datacenter", "job", "hall", "corner", NULL};
const char *const sim_discover_noises[] = {"cloud", "jitter", "startup", "hot", "outliers", "quiet", "busy", NULL};
const char *const sim_discover_allocations[] = {"spread", "packed", NULL};
const char *const sim_discover_bys[] = {"latency", "bandwidth", NULL};

static void take_count(uint32_t *out, uint64_t given)
{
	if (given > 0)
		*out = (uint32_t)given;
}

static int take(struct sim_discover *common, const char *command)
{
	struct region_spec *spec = &common->spec;
	struct region tried;
	struct error err = {0};

	*spec = discover_spec(discover_setting_at((size_t)common->setting));
	take_count(&spec->count[REGION_DATACENTER], common->datacenters);
	take_count(&spec->count[REGION_CLUSTER], common->clusters);
	take_count(&spec->count[REGION_ROW], common->rows);
	take_count(&spec->count[REGION_RACK], common->racks);
	take_count(&spec->count[REGION_HOST], common->rack_hosts);
	take_count(&spec->machines, common->machines);
	if (common->allocation >= 0)
		spec->allocation = (enum region_allocation)common->allocation;
	if (common->gbps != 0)
		spec->host_rate = common->gbps * 1e9 / 8;
	if (common->oversubscribe != 0)
		spec->share[REGION_RACK] = common->oversubscribe;
	if (!(spec->host_rate >= 1e6) || !(spec->host_rate <= 1e12))
		return complain_usage("%s: --gbps is a rate from 0.008 to 8000", command);
	if (!(spec->share[REGION_RACK] >= 0.01) || !(spec->share[REGION_RACK] <= 1000))
		return complain_usage("%s: --oversubscribe is from 0.01 to 1000", command);
	if (!(common->level <= 1000))
		return complain_usage("%s: --level is from 0 to 1000", command);
	if (!(common->raw > 0) || !(common->raw <= 1))
		return complain_usage("%s: --raw is a PAIA, above 0 and at most 1, such as 0.813", command);
	/* A region that does not fit is wrong usage, and is refused before anything runs. */
	if (region_init(&tried, spec, common->seed, &err) != ESP_OK)
		return complain_usage("%s: %s", command, err.text);
	region_fini(&tried);
	return -1;
}

int sim_discover_parse(const struct options_usage *usage, int *argc, char **argv, struct sim_discover *common)
{
	int exit_status = options_parse(usage, argc, argv);

	return exit_status < 0 ? take(common, usage->command) : exit_status;
}

enum esp_status sim_discover_level(const struct sim_discover *common, enum reading_noise noise, double *out_level,
                                   struct error *err)
{
	const struct region_spec spec = discover_spec(discover_setting_at(SIM_SETTING_DATACENTER));
	double raw;

	*out_level = common->level;
	if (common->level >= 0)
		return ESP_OK;
	return discover_calibrate(&spec, noise, common->raw, 1, DISCOVER_CASES, out_level, &raw, err);
}

enum esp_status sim_discover_calibrate(struct sim_discover *common, struct error *err)
{
	return sim_discover_level(common, (enum reading_noise)common->noise, &common->taken_level, err);
}

struct embed_options sim_discover_embed(const struct sim_discover *common)
{
	return (struct embed_options){.dimensions = (uint32_t)common->dimensions, .restarts = (uint32_t)common->restarts,
	                              .steps = (uint32_t)common->steps, .no_startup = common->no_startup};
}

struct find_config sim_discover_find(const struct sim_discover *common)
{
	return (struct find_config){
		.by = (enum find_by)common->by,
		.noise = (enum reading_noise)common->noise,
		.level = common->taken_level,
		.candidates = {.embed = sim_discover_embed(common), .keep_outliers = common->keep_outliers},
		.bytes = common->bytes,
	};
}

void sim_discover_json_begin(const struct sim_discover *common, struct json *json, unsigned flat_depth)
{
	const struct region_spec *spec = &common->spec;

	json_init(json, stdout);
	json->flat_depth = flat_depth;
	json_object_begin(json);
	json_put_string(json, "setting", sim_discover_settings[common->setting]);
	json_put_u64(json, "machines", spec->machines);
	json_put_u64(json, "datacenters", spec->count[REGION_DATACENTER]);
	json_put_u64(json, "clusters", spec->count[REGION_CLUSTER]);
	json_put_u64(json, "rows", spec->count[REGION_ROW]);
	json_put_u64(json, "racks", spec->count[REGION_RACK]);
	json_put_u64(json, "rack_hosts", spec->count[REGION_HOST]);
	json_put_string(json, "allocation", sim_discover_allocations[spec->allocation]);
	json_put_double(json, "gbps", spec->host_rate * 8e-9);
	json_put_double(json, "oversubscribe", spec->share[REGION_RACK]);
	json_put_u64(json, "seed", common->seed);
}

void sim_discover_json_noise(const struct sim_discover *common, struct json *json)
{
	json_put_string(json, "noise", sim_discover_noises[common->noise]);
	json_put_double(json, "level", common->taken_level);
}

void sim_discover_json_find(const struct sim_discover *common, struct json *json)
{
	json_put_string(json, "by", sim_discover_bys[common->by]);
	sim_discover_json_noise(common, json);
	json_put_u64(json, "bytes", common->bytes);
	json_put_u64(json, "chunk_bytes", common->chunk_bytes);
}

const char *sim_discover_text(const struct sim_discover *common, char text[SIM_DISCOVER_TEXT])
{
	const struct region_spec *spec = &common->spec;

	snprintf(
		text, SIM_DISCOVER_TEXT, "%u machines, %s over %u racks of %u hosts in %u row%s, %u cluster%s, %u datacenter%s",
		spec->machines, sim_discover_allocations[spec->allocation], spec->count[REGION_RACK], spec->count[REGION_HOST],
		spec->count[REGION_ROW], plural(spec->count[REGION_ROW]), spec->count[REGION_CLUSTER],
		plural(spec->count[REGION_CLUSTER]), spec->count[REGION_DATACENTER], plural(spec->count[REGION_DATACENTER]));
	return text;
}

static const struct cli_command *const commands[] = {
	&cli_discover_accuracy,
	&cli_discover_agreement,
	&cli_discover_autotune,
	&cli_discover_best,
	&cli_discover_calibrate,
	&cli_discover_network,
	&cli_discover_speed,
};

static const struct cli_family family = {
	.name = "discover",
	.about = "Discovery as a whole in virtual time: a region of a cloud is made up, probes read it with other people's "
             "traffic in\n"
			 "it, and Espalier embeds, groups, plans and runs what it would. docs/discovery-sim.md has the models.\n",
	.more = "exit status: 0 done; 1 the work failed; 2 wrong usage\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

static int run(int argc, char **argv)
{
	return cli_family_run(&family, argc, argv);
}

const struct cli_command study_discover = {"discover", "probing, grouping and tuning on made-up datacenters", run, 1};
