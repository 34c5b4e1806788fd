/*
 * bench_switch.c - espalier bench switch: sums through a switch beside a ring, the library's own choice and Gloo.
 */
#include "cli/bench_switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cli.h"
#include "report/options.h"
#include "report/rows.h"
#include "tools/bench/switch_stage.h"
#include "tune/through.h"

#define COMMAND "bench switch"
#define ROUNDS_MOST 20u

static const struct switch_way ways[] = {
	{"switch i32", NULL, true, "i32", "float", "auto", 1},
	{"switch fixed", NULL, true, "f32", "fixed", "auto", 1},
	{"switch fixed16", NULL, true, "f32", "fixed16", "auto", 0.5},
	{"auto f32", NULL, false, "f32", "float", "auto", 1},
	{"ring f32", NULL, false, "f32", "float", "ring", 1},
	{"ring fixed16", NULL, false, "f32", "fixed16", "ring", 0.5},
	{"gloo ring", "ring", false, "f32", "float", NULL, 1},
	{"gloo halving-doubling", "halving-doubling", false, "f32", "float", NULL, 1},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

struct given {
	const char *lab;
	uint64_t workers, size, iterations, rounds, rate;
	double links;
	bool json;
};

/* A way that is compared, and its times. */
struct entry {
	const struct switch_way *way;
	double seconds[ROUNDS_MOST]; /* by round; in the end the median is the first */
	double least, most, bound;
	uint64_t wrong;
	bool went_through;
};

/* By the bytes that links carry; 0: without a lab there is none. */
static double bound_of(const struct given *given, const struct switch_way *way)
{
	uint64_t bytes = (uint64_t)((double)given->size * way->word_share);
	double rate = (double)given->rate / 8;

	if (!given->rate)
		return 0;
	return way->is_switched ? tune_through_switch(bytes, (uint32_t)given->workers, rate, given->links)
	                        : tune_through_ring(bytes, (uint32_t)given->workers, rate);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static enum esp_status run_one(const struct switch_stage *stage, struct entry *entry, uint32_t round, struct error *err)
{
	struct switch_result result;
	enum esp_status status = bench_switch_stage_run(stage, entry->way, &result, err);

	if (status != ESP_OK)
		return status;
	entry->seconds[round] = result.seconds;
	entry->least = round == 0 || result.least < entry->least ? result.least : entry->least;
	entry->most = result.most > entry->most ? result.most : entry->most;
	entry->wrong += result.wrong;
	entry->went_through = result.went_through;
	return ESP_OK;
}

/* Each round begins with another way. */
static enum esp_status run_all(const struct switch_stage *stage, const struct given *given, struct entry *entries,
                               uint32_t count, struct error *err)
{
	bool shows = isatty(STDERR_FILENO) == 1;
	enum esp_status status = ESP_OK;

	for (uint32_t round = 0; status == ESP_OK && round < given->rounds; round++)
		for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
			struct entry *entry = &entries[(i + round) % count];
			if (shows)
				fprintf(stderr, "\r\033[Kespalier: bench switch: round %u of %u, %s", round + 1,
				        (unsigned)given->rounds, entry->way->name);
			status = run_one(stage, entry, round, err);
		}
	if (shows)
		fprintf(stderr, "\r\033[K");
	for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
		qsort(entries[i].seconds, given->rounds, sizeof(double), compare);
		entries[i].seconds[0] = entries[i].seconds[given->rounds / 2];
	}
	return status;
}

/* ---- printing ---- */

static const struct column columns[] = {
	{"WAY", "way"},
	{"TIME MS", "seconds", "%.2f", 1e3},
	{"LEAST", "least_seconds", "%.2f", 1e3},
	{"MOST", "most_seconds", "%.2f", 1e3},
	{"BOUND MS", "bound_seconds", "%.2f", 1e3},
	{"SHARE OF BOUND", "share", "%.3f"},
	{"TIMES RING F32", "beside_ring", "%.2f"},
	{"THROUGH SWITCH", "through_switch"},
	{"WRONG", "wrong"},
	{0},
};

static double ring_seconds(const struct entry *entries, uint32_t count)
{
	double ring = 0;

	for (uint32_t i = 0; i < count; i++)
		if (entries[i].way == &ways[4])
			ring = entries[i].seconds[0];
	return ring;
}

static enum esp_status print_all(const struct given *given, const struct entry *entries, uint32_t count)
{
	struct json json;
	struct rows rows;
	double ring = ring_seconds(entries, count);

	if (given->json) {
		json_init(&json, stdout);
		json_object_begin(&json);
		json_put_u64(&json, "workers", given->workers);
		json_put_u64(&json, "bytes", given->size);
		json_put_u64(&json, "rate_bits_per_second", given->rate);
		json_put_double(&json, "switch_links", given->links);
		json_put_u64(&json, "rounds", given->rounds);
		json_key(&json, "ways");
	} else if (given->rate) {
		printf("%u workers of %.0f Mbit/s, the switch's link %g times as fast: allreduce of %.1f MiB\n\n",
		       (unsigned)given->workers, (double)given->rate / 1e6, given->links, (double)given->size / (1 << 20));
	} else {
		printf("%u workers and the switch on this machine: allreduce of %.1f MiB; bounds need a lab\n\n",
		       (unsigned)given->workers, (double)given->size / (1 << 20));
	}
	rows_begin(&rows, columns, given->json ? &json : NULL);
	for (uint32_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[i];
		rows_text(&rows, entry->way->name);
		rows_double(&rows, entry->seconds[0]);
		rows_double(&rows, entry->least);
		rows_double(&rows, entry->most);
		if (entry->bound > 0)
			rows_double(&rows, entry->bound);
		else
			rows_none(&rows);
		if (entry->bound > 0)
			rows_double(&rows, entry->bound / entry->seconds[0]);
		else
			rows_none(&rows);
		rows_double(&rows, ring / entry->seconds[0]);
		rows_bool(&rows, entry->went_through);
		rows_u64(&rows, entry->wrong);
	}
	return given->json ? rows_finish(&rows, stdout) : rows_end(&rows, stdout);
}

/* ---- the command ---- */

static int compare_ways(const struct given *given)
{
	const struct switch_stage_config config = {
		.rate = given->rate, .links = given->links, .workers = (uint32_t)given->workers,
		.iterations = (uint32_t)given->iterations, .bytes = given->size, .seconds = 300};
	struct entry entries[WAYS] = {{0}};
	struct switch_stage stage;
	uint32_t count = 0;
	uint64_t wrong = 0;
	struct error err;

	if (bench_switch_stage_open(&stage, &config, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	for (uint32_t i = 0; i < WAYS; i++)
		if (!ways[i].gloo || stage.gloo[0])
			entries[count++] = (struct entry){.way = &ways[i], .bound = bound_of(given, &ways[i])};
	enum esp_status status = run_all(&stage, given, entries, count, &err);
	bench_switch_stage_close(&stage);
	if (status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	if (print_all(given, entries, count) != ESP_OK)
		return complain(COMMAND ": cannot write to the standard output");
	for (uint32_t i = 0; i < count; i++)
		wrong += entries[i].wrong;
	return wrong == 0 ? EXIT_OK : complain(COMMAND ": %llu elements of results are wrong", (unsigned long long)wrong);
}

int cli_bench_switch(int argc, char **argv)
{
	struct given given = {.workers = 4, .size = 4 << 20, .iterations = 10, .rounds = 3, .links = 8};
	const struct option_spec options[] = {
		{"lab", 0, OPTION_STRING, &given.lab, "RATE",
	     "in a lab whose links have this rate, as in 200mbit (default: on this machine)"},
		{"workers", 'n', OPTION_U64, &given.workers, "N", "ranks (default 4)", .min = 2, .max = 64},
		{"switch-links", 0, OPTION_DOUBLE, &given.links, "K",
	     "in the lab: the switch's link has K times a worker's rate (default 8)"},
		{"size", 'b', OPTION_BYTES, &given.size, "BYTES", "of the vector (default 4M)", .min = 65536, .max = 1u << 30},
		{"iters", 0, OPTION_U64, &given.iterations, "N", "calls of each way in a round (default 10)", .min = 1,
	     .max = 100000},
		{"rounds", 0, OPTION_U64, &given.rounds, "N", "rounds over all ways (default 3)", .min = 1, .max = ROUNDS_MOST},
		{"json", 0, OPTION_FLAG, &given.json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND, "",
		"Compares allreduces through a switch, of integers and of floats in fixed point, with a ring, with the\n"
		"library's own choice, and with Gloo where 'make bench' has built it. In a lab the switch is a process on a\n"
		"host of the rack; the bound is what the bytes on the busiest link take, and the share tells how much of\n"
		"that was reached. The lab is removed afterwards.",
		options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	if (given.lab && (!units_parse_rate(given.lab, &given.rate) || given.rate < 1000000))
		return complain_usage(COMMAND ": --lab is a rate from 1mbit on, such as 200mbit, not '%s'", given.lab);
	if (!(given.links > 0 && given.links <= 1000))
		return complain_usage(COMMAND ": --switch-links is a number above 0, up to 1000");
	given.size -= given.size % 4;
	return compare_ways(&given);
}
