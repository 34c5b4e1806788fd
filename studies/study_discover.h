/*
 * study_discover.h - espalier-study discover: its own subcommands, one file each, and the options that they share.
 *
 *     struct sim_discover common = SIM_DISCOVER_INIT;
 *     const struct option_spec options[] = {SIM_DISCOVER_OPTIONS(&common), ... , {0}};
 *     int exit_status = sim_discover_parse(&usage, &argc, argv, &common);
 */
#ifndef STUDIES_STUDY_DISCOVER_H
#define STUDIES_STUDY_DISCOVER_H

#include "cli/cli.h"
#include "network/discover/embed.h"
#include "report/json.h"
#include "report/options.h"
#include "studies/discover_find.h"

extern const struct cli_command cli_discover_accuracy, cli_discover_agreement, cli_discover_autotune, cli_discover_best,
	cli_discover_calibrate, cli_discover_network, cli_discover_speed;

extern const char *const sim_discover_settings[], *const sim_discover_noises[], *const sim_discover_allocations[],
																					*const sim_discover_bys[];

struct sim_discover {
	/* as it was typed; 0 or less: as the setting has it */
	int setting, allocation;
	uint64_t datacenters, clusters, rows, racks, rack_hosts, machines;
	double gbps, oversubscribe;
	int noise;
	double level; /* below 0: to be calibrated */
	double raw;
	uint64_t seed, dimensions, restarts, steps;
	bool no_startup, keep_outliers, json;
	int by; /* enum find_by */
	uint64_t bytes, chunk_bytes;
	/* as it was taken */
	struct region_spec spec;
	double taken_level; /* of the noise, once sim_discover_calibrate() was called */
};

#define SIM_DISCOVER_INIT(of) \
	{ \
		.setting = (of), .allocation = -1, .level = -1, .raw = DISCOVER_RAW, .seed = 1, .bytes = 100000000, \
		.chunk_bytes = 1 << 20 \
	}

/* as discover_setting_at() has them */
enum { SIM_SETTING_REGION, SIM_SETTING_DATACENTER, SIM_SETTING_JOB, SIM_SETTING_HALL, SIM_SETTING_CORNER };

#define SIM_DISCOVER_REGION(common) \
	{"setting", \
	 0, \
	 OPTION_CHOICE, \
	 &(common)->setting, \
	 "NAME", \
	 "region, datacenter, job, hall or corner: the options below change what it has", \
	 .choices = sim_discover_settings}, \
		{"machines", 'n', \
	     OPTION_U64, &(common)->machines, \
	     "N",        "virtual machines of the job", \
	     .min = 2,   .max = REGION_MACHINES_MOST}, \
		{"datacenters", 0, OPTION_U64, &(common)->datacenters, "N", "in all", .min = 1, .max = 65536}, \
		{"clusters", 0, OPTION_U64, &(common)->clusters, "N", "in all", .min = 1, .max = 65536}, \
		{"rows", 0, OPTION_U64, &(common)->rows, "N", "in all", .min = 1, .max = 65536}, \
		{"racks", 0, OPTION_U64, &(common)->racks, "N", "in all", .min = 1, .max = 65536}, \
		{"rack-hosts", 0, OPTION_U64, &(common)->rack_hosts, "N", "hosts of a rack", .min = 1, .max = 4096}, \
		{"allocation", \
	     0, \
	     OPTION_CHOICE, \
	     &(common)->allocation, \
	     "HOW", \
	     "spread: any host; packed: rack after rack, as far as they have room", \
	     .choices = sim_discover_allocations}, \
		{"gbps", 0, OPTION_DOUBLE, &(common)->gbps, "G", "Gbit/s of a host's link (default 10)"}, \
		{"oversubscribe",          0,   OPTION_DOUBLE, \
	     &(common)->oversubscribe, "N", "a rack's uplink has its hosts' rates divided by this (default 4)"}, \
		{"seed", 's', OPTION_U64, &(common)->seed, "N", "of the first case (default 1)", .max = UINT64_MAX / 2}, \
	{ \
		"json", 0, OPTION_FLAG, &(common)->json, NULL, "print JSON" \
	}

#define SIM_DISCOVER_NOISE(common) \
	{"noise", \
	 0, \
	 OPTION_CHOICE, \
	 &(common)->noise, \
	 "MODEL", \
	 "cloud (default), jitter, startup, hot, outliers, quiet or busy", \
	 .choices = sim_discover_noises}, \
		{"level",          0,   OPTION_DOUBLE, \
	     &(common)->level, "L", "of the noise; by default calibrated, so that raw readings have the PAIA of --raw"}, \
	{ \
		"raw", 0, OPTION_DOUBLE, &(common)->raw, "P", \
			"that PAIA, on the setting datacenter (default 0.813, the paper's)" \
	}

#define SIM_DISCOVER_EMBED(common) \
	{"dimensions", \
	 0, \
	 OPTION_U64, \
	 &(common)->dimensions, \
	 "N", \
	 "of the embedding (default: the root of the number of machines)", \
	 .max = EMBED_DIMENSIONS_MAX}, \
		{"restarts", 0, OPTION_U64, &(common)->restarts, "N", \
		 "of the embedding, the best of which is kept (default 4)", \
	     .max = 1000}, \
		{"steps", 0, OPTION_U64, &(common)->steps, "N", "of Adam in each (default 400)", .max = 1000000}, \
		{"no-startup", 0, OPTION_FLAG, &(common)->no_startup, NULL, "embed without start-up costs of hosts"}, \
	{ \
		"keep-outliers", 0, OPTION_FLAG, &(common)->keep_outliers, NULL, \
			"embed readings as they are; by default those beyond all others are brought back first, as espalier " \
			"probe does" \
	}

#define SIM_DISCOVER_FIND(common, chunk_text) \
	{"by", \
	 0, \
	 OPTION_CHOICE, \
	 &(common)->by, \
	 "PROBE", \
	 "what machines are grouped by: latency (default) or bandwidth", \
	 .choices = sim_discover_bys}, \
		{"bytes",      'b', \
	     OPTION_BYTES, &(common)->bytes, \
	     "B",          "of the buffer (default 100000000)", \
	     .min = 4,     .max = UINT64_C(1) << 40}, \
	{ \
		"chunk", 0, OPTION_BYTES, &(common)->chunk_bytes, "B", \
			"the most of it that travels in one piece (default " chunk_text ")", .min = 4 \
	}

/* options_parse(), and then what makes no sense together. Returns -1 to go on, or the exit status after having said
 * what is wrong. */
int sim_discover_parse(const struct options_usage *usage, int *argc, char **argv, struct sim_discover *common)
	__attribute__((warn_unused_result));

/* The level of a noise: as given, or calibrated on the setting datacenter. */
ESP_CHECKED enum esp_status sim_discover_level(const struct sim_discover *common, enum reading_noise noise,
                                               double *out_level, struct error *err);
/* That of the noise that was asked for, into taken_level. */
ESP_CHECKED enum esp_status sim_discover_calibrate(struct sim_discover *common, struct error *err);

struct embed_options sim_discover_embed(const struct sim_discover *common);
/* How groups are found, at the level that was taken. */
struct find_config sim_discover_find(const struct sim_discover *common);

/* Begins an object on the standard output, with keys that say what region it was. */
void sim_discover_json_begin(const struct sim_discover *common, struct json *json, unsigned flat_depth);
/* More keys: the noise that was taken; and how groups are found, with the noise. */
void sim_discover_json_noise(const struct sim_discover *common, struct json *json);
void sim_discover_json_find(const struct sim_discover *common, struct json *json);

/* "64 machines, spread over 683 racks of 20 hosts, 15 rows, 7 clusters, 2 datacenters". Returns text. */
#define SIM_DISCOVER_TEXT 200
const char *sim_discover_text(const struct sim_discover *common, char text[SIM_DISCOVER_TEXT]);

#endif
