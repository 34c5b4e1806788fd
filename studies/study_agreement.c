/*
 * study_agreement.c - espalier-study discover agreement: do different runs find the same groups?
 */
#include <inttypes.h>
#include <stdio.h>

#include "report/rows.h"
#include "studies/discover_agreement.h"
#include "studies/study_discover.h"
#include "tools/sim/sim_pace.h"

#define COMMAND "discover agreement"

/* Over all cases. */
struct tally {
	struct agreement_result mean;
	uint32_t more[2]; /* by alpha: cases in which its runs agreed more than the other's */
};

struct given {
	struct sim_discover common;
	uint64_t runs, cases;
	double elasticity;
	struct tally same, fresh;
};

static enum esp_status run_case(const struct given *given, const struct agreement_config *config, struct tally *tally,
                                struct error *err)
{
	struct agreement_result result;
	enum esp_status status = agreement_run(config, &result, err);

	if (status != ESP_OK)
		return status;
	tally->mean.groups = result.groups;
	for (int a = 0; a < 2; a++) {
		tally->mean.between[a] += result.between[a] / (double)given->cases;
		tally->mean.truth[a] += result.truth[a] / (double)given->cases;
		tally->mean.rows[a] += result.rows[a] / (double)given->cases;
		tally->more[a] += result.between[a] > result.between[1 - a];
	}
	return ESP_OK;
}

static enum esp_status run_all(struct given *given, struct error *err)
{
	enum esp_status status = sim_discover_calibrate(&given->common, err);
	struct sim_pace pace;
	struct agreement_config config = {.spec = given->common.spec,
	                                  .noise = (enum reading_noise)given->common.noise,
	                                  .level = given->common.taken_level,
	                                  .embed = sim_discover_embed(&given->common),
	                                  .keep_outliers = given->common.keep_outliers,
	                                  .elasticity = given->elasticity,
	                                  .runs = (uint32_t)given->runs,
	                                  .watch = {&pace, sim_tool_pace_step}};

	sim_tool_pace_begin(&pace, COMMAND, 2 * given->runs * given->cases);
	for (uint64_t i = 0; i < given->cases && status == ESP_OK; i++) {
		config.seed = given->common.seed + i;
		config.fresh = false;
		status = run_case(given, &config, &given->same, err);
		config.fresh = true;
		if (status == ESP_OK)
			status = run_case(given, &config, &given->fresh, err);
	}
	sim_tool_pace_end(&pace);
	return status;
}

static void put_tally(struct rows *rows, const char *differ, const struct tally *tally)
{
	for (int a = 0; a < 2; a++) {
		rows_text(rows, differ);
		rows_u64(rows, (uint64_t)a + 1);
		rows_double(rows, tally->mean.between[a]);
		rows_u64(rows, tally->more[a]);
		rows_double(rows, tally->mean.truth[a]);
		rows_double(rows, tally->mean.rows[a]);
	}
}

static enum esp_status print(const struct given *given)
{
	static const struct column columns[] = {
		{"runs differ in", "differ"}, {"alpha", "alpha"}, {"agreement", "agreement", "%.3f"}, {"more in", "more_in"},
		{"with racks", "with_racks", "%.3f"}, {"with rows", "with_rows", "%.3f"}, {0},
	};
	const struct sim_discover *common = &given->common;
	char text[SIM_DISCOVER_TEXT];
	struct json json;
	struct rows rows;

	if (common->json) {
		sim_discover_json_begin(common, &json, 2);
		sim_discover_json_noise(common, &json);
		json_put_u64(&json, "runs", given->runs);
		json_put_u64(&json, "cases", given->cases);
		json_put_u64(&json, "groups", given->same.mean.groups);
		json_key(&json, "results");
	} else {
		printf("%s; %" PRIu64 " runs of each of %" PRIu64 " into %u groups, noise %s at level %.4f\n",
		       sim_discover_text(common, text), given->runs, given->cases, given->same.mean.groups,
		       sim_discover_noises[common->noise], common->taken_level);
	}
	rows_begin(&rows, columns, common->json ? &json : NULL);
	put_tally(&rows, "seeds", &given->same);
	put_tally(&rows, "readings", &given->fresh);
	return rows_finish(&rows, stdout);
}

static int run(int argc, char **argv)
{
	struct given given = {
		.common = SIM_DISCOVER_INIT(SIM_SETTING_DATACENTER), .runs = 100, .cases = 1, .elasticity = 2};
	struct error err = {0};
	const struct option_spec options[] = {
		SIM_DISCOVER_REGION(&given.common),
		SIM_DISCOVER_NOISE(&given.common),
		SIM_DISCOVER_EMBED(&given.common),
		{"runs", 'r', OPTION_U64, &given.runs, "N", "of each case (default 100)", .min = 2, .max = 10000},
		{"cases", 'c', OPTION_U64, &given.cases, "N", "made-up regions, over which means are taken (default 1)",
	     .min = 1, .max = 10000},
		{"elasticity", 'e', OPTION_DOUBLE, &given.elasticity, "E", "of the sizes of groups, 1 to 2 (default 2)"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Groups the same machines many times, into as many groups as the root of their number, and prints how well "
	    "the\n"
		"groupings agree: adjusted mutual information, mean over all pairs of runs. Runs differ in the seeds of\n"
		"embedding and grouping, or in traffic and readings too. \"more in\": cases in which the runs of this "
	    "exponent\n"
		"agreed more than those of the other. Figure 5 of PLink.",
		options,
		0,
		0};
	int exit_status = sim_discover_parse(&usage, &argc, argv, &given.common);

	if (exit_status < 0 && !(given.elasticity >= 1 && given.elasticity <= 2))
		exit_status = complain_usage(COMMAND ": --elasticity is from 1 to 2");
	if (exit_status >= 0)
		return exit_status;
	enum esp_status status = run_all(&given, &err);
	if (status == ESP_OK)
		status = print(&given);
	return complain_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_agreement = {"agreement", "do different runs find the same groups? (figure 5)",
                                                   run};
