/*
 * study_autotune.c - espalier-study discover autotune: a host slows down and recovers, masters move.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/chart.h"
#include "report/rows.h"
#include "studies/discover_tune.h"
#include "studies/study_discover.h"

#define COMMAND "discover autotune"

static const char *const act_names[] = {
	[TUNE_NOTHING] = "", [TUNE_QUICK] = "quicktune", [TUNE_FINE] = "finetune", [TUNE_TAKEN_BACK] = "taken back"};

struct given {
	uint64_t machines, racks, steps, slow_from, slow_to, bytes, chunk_bytes;
	double gbps, slow, oversubscribe;
	bool json;
	const char *svg;
	struct autotune_step *result;
};

static double gbps_of(const struct given *given, double seconds)
{
	return (double)given->bytes * 8e-9 / seconds;
}

/* Steps in which the machine is slow: how many times as fast the tuned plan is, from the second step after the first
 * change on. */
static double gain_while_slow(const struct given *given)
{
	uint64_t from = given->slow_from;
	double tuned = 0, even = 0;

	while (from < given->slow_to && given->result[from].report.act == TUNE_NOTHING)
		from++;
	for (uint64_t i = from + 1; i < given->slow_to && i < given->steps; i++) {
		tuned += given->result[i].tuned;
		even += given->result[i].even;
	}
	return even / tuned;
}

static void put_heading(const struct given *given, struct json *json)
{
	json_init(json, stdout);
	json->flat_depth = 2;
	json_object_begin(json);
	json_put_u64(json, "machines", given->machines);
	json_put_u64(json, "racks", given->racks);
	json_put_double(json, "gbps", given->gbps);
	json_put_double(json, "slow", given->slow);
	json_put_u64(json, "slow_from", given->slow_from);
	json_put_u64(json, "slow_to", given->slow_to);
	json_put_u64(json, "bytes", given->bytes);
	json_put_u64(json, "chunk_bytes", given->chunk_bytes);
	json_put_double(json, "gain_while_slow", gain_while_slow(given));
	json_key(json, "steps");
}

static void put_step(struct rows *rows, const struct given *given, uint64_t step)
{
	const struct autotune_step *it = &given->result[step];
	char text[TUNE_TEXT];

	rows_shown(rows, "%" PRIu64 "%s", step,
	           step == given->slow_from ? " slow"
	           : step == given->slow_to ? " restored"
	                                    : "");
	rows_u64(rows, step);
	rows_shown(rows, "%.3f", gbps_of(given, it->tuned));
	rows_double(rows, it->tuned);
	rows_shown(rows, "%.3f", gbps_of(given, it->even));
	rows_double(rows, it->even);
	rows_double(rows, it->balance);
	rows_u64(rows, it->sent);
	rows_shown(rows, "%s", it->report.act == TUNE_NOTHING ? "-" : tuner_explain(&it->report, text));
	rows_text(rows, act_names[it->report.act]);
	rows_u64(rows, it->report.moved);
}

static enum esp_status print(const struct given *given)
{
	static const struct column columns[] = {
		{"step", "step"},
		{"Gbit/s", "seconds"},
		{"even masters", "even_seconds"},
		{"balance", "balance", "%.3f"},
		{NULL, "slow_machine_sent"},
		{"what was done then", "act"},
		{NULL, "moved"},
		{0},
	};
	struct json json;
	struct rows rows;

	if (given->json)
		put_heading(given, &json);
	rows_begin(&rows, columns, given->json ? &json : NULL);
	for (uint64_t i = 0; i < given->steps; i++)
		put_step(&rows, given, i);
	enum esp_status status = rows_finish(&rows, stdout);
	if (!given->json)
		printf("while the machine was slow: %.3f times as fast as with even masters; at the end bytes are balanced to "
		       "within %.1f %%\n",
		       gain_while_slow(given), 100 * (given->result[given->steps - 1].balance - 1));
	return status;
}

static enum esp_status draw(const struct given *given, double *x, double *tuned, double *even, struct error *err)
{
	const struct chart_line lines[] = {{"retuned", tuned}, {"even masters", even}};
	char note[160];

	for (uint64_t i = 0; i < given->steps; i++) {
		x[i] = (double)i;
		tuned[i] = gbps_of(given, given->result[i].tuned);
		even[i] = gbps_of(given, given->result[i].even);
	}
	snprintf(note, sizeof note, "%llu machines at %g Gbit/s; one has %g %% of that in steps %llu to %llu",
	         (unsigned long long)given->machines, given->gbps, 100 * given->slow, (unsigned long long)given->slow_from,
	         (unsigned long long)given->slow_to - 1);
	const struct chart chart = {.title = "A host slows down and recovers",
	                            .note = note,
	                            .x_label = "step",
	                            .y_label = "buffer over time (Gbit/s)",
	                            .x = x,
	                            .count = given->steps,
	                            .lines = lines,
	                            .line_count = 2};
	return chart_save(&chart, given->svg, err);
}

static enum esp_status write_chart(const struct given *given, struct error *err)
{
	double *room = calloc(3 * given->steps, sizeof(*room));
	enum esp_status status = room ? draw(given, room, room + given->steps, room + 2 * given->steps, err)
	                              : error_set(err, ESP_ENOMEM, "no memory for a chart");

	free(room);
	return status;
}

static enum esp_status measure(struct given *given, struct error *err)
{
	const struct autotune_config config = {.machines = (uint32_t)given->machines,
	                                       .racks = (uint32_t)given->racks,
	                                       .rate = given->gbps * 1e9 / 8,
	                                       .oversubscribe = given->oversubscribe,
	                                       .slow = given->slow,
	                                       .slow_from = (uint32_t)given->slow_from,
	                                       .slow_to = (uint32_t)given->slow_to,
	                                       .steps = (uint32_t)given->steps,
	                                       .load = {given->bytes, given->chunk_bytes}};

	given->result = calloc(given->steps, sizeof(*given->result));
	return given->result ? autotune_run(&config, given->result, err)
	                     : error_set(err, ESP_ENOMEM, "no memory for the results");
}

static int check(const struct given *given)
{
	if (!(given->gbps >= 0.001 && given->gbps <= 8000))
		return complain_usage(COMMAND ": --gbps is a rate from 0.001 to 8000");
	if (!(given->slow > 0 && given->slow <= 1))
		return complain_usage(COMMAND ": --slow is a share of the rate, above 0 and at most 1, such as 0.4");
	if (given->slow_from > given->slow_to)
		return complain_usage(COMMAND ": --restore-at is not before --slow-at");
	if (given->racks > given->machines)
		return complain_usage(COMMAND ": each rack needs a machine");
	if (!(given->oversubscribe >= 0.01 && given->oversubscribe <= 1000))
		return complain_usage(COMMAND ": --oversubscribe is from 0.01 to 1000");
	return -1;
}

static int run(int argc, char **argv)
{
	struct given given = {.machines = 8,
	                      .racks = 1,
	                      .steps = 30,
	                      .slow_from = 1,
	                      .slow_to = 11,
	                      .bytes = 100000000,
	                      .chunk_bytes = 64 << 10,
	                      .gbps = 5,
	                      .slow = 0.4,
	                      .oversubscribe = 1};
	struct error err = {0};
	const struct option_spec options[] = {
		{"machines", 'n', OPTION_U64, &given.machines, "N", "(default 8)", .min = 2, .max = 1024},
		{"racks", 0, OPTION_U64, &given.racks, "N", "1 (default): the flat plan; more: two-level", .min = 1,
	     .max = 1024},
		{"gbps", 0, OPTION_DOUBLE, &given.gbps, "G", "Gbit/s of a host's link (default 5)"},
		{"oversubscribe", 0, OPTION_DOUBLE, &given.oversubscribe, "N", "of the racks (default 1)"},
		{"slow", 0, OPTION_DOUBLE, &given.slow, "S",
	     "the share of its rate that the last machine is left with (default 0.4)"},
		{"slow-at", 0, OPTION_U64, &given.slow_from, "STEP", "the first step in which it is slow (default 1)",
	     .max = 100000},
		{"restore-at", 0, OPTION_U64, &given.slow_to, "STEP", "the first step in which it no longer is (default 11)",
	     .max = 100000},
		{"steps", 0, OPTION_U64, &given.steps, "N", "(default 30)", .min = 1, .max = 100000},
		{"bytes", 'b', OPTION_BYTES, &given.bytes, "B", "of the buffer (default 100000000)", .min = 4,
	     .max = UINT64_C(1) << 40},
		{"chunk", 0, OPTION_BYTES, &given.chunk_bytes, "B", "the most of it that travels in one piece (default 64K)",
	     .min = 4},
		{"svg", 0, OPTION_STRING, &given.svg, "FILE", "draw throughput over the steps"},
		{"json", 0, OPTION_FLAG, &given.json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {COMMAND,
	                                    "",
	                                    "Runs an allreduce step by step while the link of one machine slows down and "
	                                    "recovers; after each step masters are\n"
	                                    "moved by what the connections measured (Quicktune, Finetune). Beside it the "
	                                    "even plan runs. Figure 10 of PLink.",
	                                    options,
	                                    0,
	                                    0};
	int exit_status = options_parse(&usage, &argc, argv);

	if (exit_status < 0)
		exit_status = check(&given);
	if (exit_status >= 0)
		return exit_status;
	enum esp_status status = measure(&given, &err);
	if (status == ESP_OK && given.svg)
		status = write_chart(&given, &err);
	if (status == ESP_OK)
		status = print(&given);
	free(given.result);
	return complain_end(COMMAND, status, &err);
}

const struct cli_command cli_discover_autotune = {"autotune",
                                                  "a host slows down and recovers, masters move (figure 10)", run};
