/*
 * fault_bench.c - a rank of a job is killed or stopped, in every phase of its life: how soon do all others know, do they go
 * on, and is every sum right?
 *
 *     fault_bench --runs 1000 --ranks 3,8 --liveness-ms 1000 --seed 1
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "referee.h"
#include "report/json.h"
#include "report/table.h"

struct options {
	struct trial_range range;
	uint64_t runs, seed;
	bool json, samples, verbose, strict;
};

static const char usage[] =
	"usage: fault_bench [OPTIONS]\n"
	"\n"
	"A rank of a job of processes is killed or stopped. Tells for each way and phase how long after the signal the calls of all\n"
	"other ranks ended with an error that names it, how long until a sum without it was right, and what went wrong. Exits\n"
	"with 1 if a rank hung, a sum was wrong, or anything else was not as it should be.\n"
	"\n"
	"  --runs N          trials, through all ways, phases and transports in turn (default 80)\n"
	"  --seed N          of the first trial (default 1); each has the next one\n"
	"  --ranks LIST      numbers of ranks, 2 to 16 (default 3)\n"
	"  --ways LIST       kill, stop (default both)\n"
	"  --phases LIST     joining, connecting, idle, late, calls, first-chunk, middle-chunk, last-chunk, shrink, leaving (default all)\n"
	"  --transport LIST  shm, tcp (default both)\n"
	"  --liveness-ms N   the setting: how long a rank may be silent (default 1000)\n"
	"  --join-seconds N  the setting: how long ranks wait for each other in joining (default 3)\n"
	"  --json            print JSON\n"
	"  --samples         in it, the times of all survivors\n"
	"  --strict          exit with 1 also if an error blamed another rank than the victim\n"
	"  --verbose         a line for each trial, on stderr\n"
	"  --help            this\n"
	"\n"
	"Columns: error ms, from the signal until a call of a survivor ended with an error that names the victim; on ms, until a sum\n"
	"without it was right; both as median, 99th percentile and worst. hung: trials in which a rank was not through in time; wrong: with\n"
	"a wrong sum or report; broken: with a rank that ended in another way than it should; misnamed: errors that blamed another\n"
	"rank; missed: trials in which the phase was over before the signal came.\n"
	"\n"
	"Every trial follows from its seed, though not its timing: --seed N --runs 1 --verbose, with the same lists, plays one again.\n"
	"\n"
	"  fault_bench --runs 400 --ranks 3,8                          everything, some minutes\n"
	"  fault_bench --ways stop --phases joining --runs 20 --strict whom do ranks blame that wait for one that is stopped?\n"
	"  fault_bench --ways kill --phases idle --transport tcp --json --samples\n"
	"\n"
	"scripts/bench-faults measures the same beside Gloo and Open MPI; docs/failure.md tells what should happen.\n";

static _Noreturn void refuse(const char *option, const char *value)
{
	fprintf(stderr, "fault_bench: %s does not take '%s'; --help tells what it takes\n", option, value);
	exit(2);
}

/* ---- options ---- */

static uint64_t parse_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
	uint64_t value;

	if (!number_parse_u64(text, strlen(text), &value) || value < least || value > most)
		refuse(option, text);
	return value;
}

/* Sets those of the names that are in the list. */
static void parse_names(const char *option, char *list, const char *const *names, bool *out)
{
	char *rest = NULL;

	for (uint32_t i = 0; names[i]; i++)
		out[i] = false;
	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		uint32_t at = 0;

		while (names[at] && strcmp(names[at], word) != 0)
			at++;
		if (!names[at])
			refuse(option, word);
		out[at] = true;
	}
}

static void parse_ranks(char *list, struct trial_range *range)
{
	char *rest = NULL;

	range->rank_count = 0;
	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (range->rank_count == sizeof(range->ranks) / sizeof(range->ranks[0]))
			refuse("--ranks", word);
		range->ranks[range->rank_count++] = (uint32_t)parse_number("--ranks", word, 2, TRIAL_RANKS);
	}
}

static bool any(const bool *wanted, uint32_t count)
{
	while (count > 0 && !wanted[count - 1])
		count--;
	return count > 0;
}

static void set_option(struct options *options, int option, char *value)
{
	static const char *const transports[] = {"shm", "tcp", NULL};
	bool chosen[2];

	switch (option) {
	case 'n':
		options->runs = parse_number("--runs", value, 1, UINT32_MAX);
		break;
	case 's':
		options->seed = parse_number("--seed", value, 0, UINT64_MAX - UINT32_MAX);
		break;
	case 'r':
		parse_ranks(value, &options->range);
		break;
	case 'w':
		parse_names("--ways", value, way_names, options->range.ways);
		break;
	case 'p':
		parse_names("--phases", value, phase_names, options->range.phases);
		break;
	case 't':
		parse_names("--transport", value, transports, chosen);
		options->range.shm = chosen[0];
		options->range.tcp = chosen[1];
		break;
	case 'l':
		options->range.liveness_ms = (uint32_t)parse_number("--liveness-ms", value, 100, 86400000);
		break;
	case 'j':
		options->range.join_seconds = (uint32_t)parse_number("--join-seconds", value, 1, 86400);
		break;
	case 'J':
		options->json = true;
		break;
	case 'S':
		options->samples = true;
		break;
	case 'v':
		options->verbose = true;
		break;
	case 'x':
		options->strict = true;
		break;
	default:
		fputs(usage, option == 'h' ? stdout : stderr);
		exit(option == 'h' ? 0 : 2);
	}
}

static void parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"runs", required_argument, NULL, 'n'},        {"seed", required_argument, NULL, 's'},
		{"ranks", required_argument, NULL, 'r'},       {"ways", required_argument, NULL, 'w'},
		{"phases", required_argument, NULL, 'p'},      {"transport", required_argument, NULL, 't'},
		{"liveness-ms", required_argument, NULL, 'l'}, {"join-seconds", required_argument, NULL, 'j'},
		{"json", no_argument, NULL, 'J'},              {"verbose", no_argument, NULL, 'v'},
		{"samples", no_argument, NULL, 'S'},           {"help", no_argument, NULL, 'h'},
		{"strict", no_argument, NULL, 'x'},
		{NULL, 0, NULL, 0},
	};

	*options = (struct options){.runs = 80, .seed = 1, .range = {.ranks = {3}, .rank_count = 1, .shm = true, .tcp = true,
	                                                             .liveness_ms = 1000, .join_seconds = 3}};
	memset(options->range.ways, true, sizeof(options->range.ways));
	memset(options->range.phases, true, sizeof(options->range.phases));
	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;)
		set_option(options, c, optarg);
	if (optind < argc)
		refuse("it", argv[optind]);
	if (options->range.rank_count == 0 || !any(options->range.ways, WAY_COUNT) || !any(options->range.phases, PHASE_COUNT) ||
	    !(options->range.shm || options->range.tcp))
		refuse("one of the lists", "");
}

/* ---- results ---- */

/* Of one way and phase. */
struct row {
	uint64_t runs, missed, hung, wrong, misnamed, broken;
	double *error_ms, *went_on_ms;
	size_t error_count, went_on_count;
};

static void add(double **values, size_t *count, double value)
{
	double *more = realloc(*values, (*count + 1) * sizeof(*more));

	if (!more) {
		fputs("fault_bench: no memory\n", stderr);
		exit(1);
	}
	*values = more;
	more[(*count)++] = value;
}

static void enter(struct row *row, const struct outcome *outcome)
{
	row->runs++;
	row->missed += !outcome->has_struck;
	row->hung += outcome->hung > 0;
	row->wrong += outcome->wrong > 0;
	row->misnamed += outcome->misnamed;
	row->broken += outcome->broken > 0;
	for (uint32_t i = 0; i < outcome->trial.size; i++) {
		if (outcome->error_ns[i] != 0)
			add(&row->error_ms, &row->error_count, (double)outcome->error_ns[i] / (double)NS_PER_MS);
		if (outcome->went_on_ns[i] != 0)
			add(&row->went_on_ms, &row->went_on_count, (double)outcome->went_on_ns[i] / (double)NS_PER_MS);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of sorted values, the one below which this share of them lies; NaN: there is none. */
static double quantile(const double *values, size_t count, double share)
{
	if (count == 0)
		return __builtin_nan("");
	return values[(size_t)(share * (double)(count - 1) + 0.5)];
}

static const double shares[] = {0.5, 0.99, 1};

static void put_samples(struct json *json, const char *key, const double *values, size_t count)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t i = 0; i < count; i++)
		json_double(json, values[i]);
	json_array_end(json);
}

static void print_json(const struct options *options, struct row rows[WAY_COUNT][PHASE_COUNT], uint64_t bad)
{
	static const char *const error_keys[] = {"error_ms_median", "error_ms_p99", "error_ms_worst"};
	static const char *const on_keys[] = {"went_on_ms_median", "went_on_ms_p99", "went_on_ms_worst"};
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_u64(&json, "seed", options->seed);
	json_put_u64(&json, "runs", options->runs);
	json_put_u64(&json, "liveness_ms", options->range.liveness_ms);
	json_put_u64(&json, "join_seconds", options->range.join_seconds);
	json_put_u64(&json, "bad_runs", bad);
	json_key(&json, "rows");
	json_array_begin(&json);
	for (uint32_t i = 0; i < WAY_COUNT * PHASE_COUNT; i++) {
		const struct row *row = &rows[i / PHASE_COUNT][i % PHASE_COUNT];

		if (row->runs == 0)
			continue;
		json_object_begin(&json);
		json_put_string(&json, "way", way_names[i / PHASE_COUNT]);
		json_put_string(&json, "phase", phase_names[i % PHASE_COUNT]);
		json_put_u64(&json, "runs", row->runs);
		json_put_u64(&json, "survivors", row->error_count);
		for (int k = 0; k < 3; k++)
			json_put_double(&json, error_keys[k], quantile(row->error_ms, row->error_count, shares[k]));
		for (int k = 0; k < 3; k++)
			json_put_double(&json, on_keys[k], quantile(row->went_on_ms, row->went_on_count, shares[k]));
		json_put_u64(&json, "hung", row->hung);
		json_put_u64(&json, "wrong", row->wrong);
		json_put_u64(&json, "broken", row->broken);
		json_put_u64(&json, "misnamed", row->misnamed);
		json_put_u64(&json, "missed", row->missed);
		if (options->samples) {
			put_samples(&json, "error_ms", row->error_ms, row->error_count);
			put_samples(&json, "went_on_ms", row->went_on_ms, row->went_on_count);
		}
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	if (json_fini(&json) != ESP_OK)
		exit(1);
}

static void time_cells(struct table *table, const double *values, size_t count)
{
	for (int k = 0; k < 3; k++) {
		if (count == 0)
			table_cell(table, "-");
		else
			table_cell(table, "%.1f", quantile(values, count, shares[k]));
	}
}

static void print_table(struct row rows[WAY_COUNT][PHASE_COUNT])
{
	static const char *const headers[] = {"way",  "phase",  "runs",   "survivors", "error ms", "p99",   "worst", "on ms",
	                                      "p99", "worst", "hung", "wrong", "broken", "misnamed", "missed", NULL};
	struct table table;

	table_init(&table, headers);
	for (uint32_t i = 0; i < WAY_COUNT * PHASE_COUNT; i++) {
		const struct row *row = &rows[i / PHASE_COUNT][i % PHASE_COUNT];

		if (row->runs == 0)
			continue;
		table_cell(&table, "%s", way_names[i / PHASE_COUNT]);
		table_cell(&table, "%s", phase_names[i % PHASE_COUNT]);
		table_cell(&table, "%" PRIu64, row->runs);
		table_cell(&table, "%zu", row->error_count);
		time_cells(&table, row->error_ms, row->error_count);
		time_cells(&table, row->went_on_ms, row->went_on_count);
		table_cell(&table, "%" PRIu64, row->hung);
		table_cell(&table, "%" PRIu64, row->wrong);
		table_cell(&table, "%" PRIu64, row->broken);
		table_cell(&table, "%" PRIu64, row->misnamed);
		table_cell(&table, "%" PRIu64, row->missed);
	}
	if (table_print(&table, stdout) != ESP_OK)
		exit(1);
	table_fini(&table);
}

/* ---- trials ---- */

static void describe(const struct outcome *outcome, const char *what)
{
	const struct trial *trial = &outcome->trial;

	fprintf(stderr, "fault_bench: seed %" PRIu64 " (%s, %s, %u ranks, victim %u, %s): %s%s%s\n", trial->seed,
	        way_names[trial->way], phase_names[trial->phase], trial->size, trial->victim, trial->is_tcp ? "tcp" : "shm", what,
	        outcome->text[0] ? ": " : "", outcome->text);
}

static bool play(const struct options *options, uint64_t seed, struct row rows[WAY_COUNT][PHASE_COUNT])
{
	struct trial trial;
	struct outcome outcome;

	trial_draw(&options->range, seed, &trial);
	if (!referee_play(&trial, &outcome)) {
		fputs("fault_bench: no memory, or no process, for a trial\n", stderr);
		exit(1);
	}
	enter(&rows[trial.way][trial.phase], &outcome);
	bool is_bad = outcome.hung || outcome.wrong || outcome.broken || (options->strict && outcome.misnamed);
	if (is_bad || options->verbose || outcome.misnamed)
		describe(&outcome, outcome.hung       ? "hang"
		                   : outcome.wrong    ? "wrong"
		                   : outcome.broken   ? "broken"
		                   : outcome.misnamed ? "misnamed"
		                                      : "fine");
	return is_bad;
}

int main(int argc, char **argv)
{
	static struct row rows[WAY_COUNT][PHASE_COUNT];
	struct options options;
	uint64_t bad = 0;

	parse(argc, argv, &options);
	for (uint64_t i = 0; i < options.runs; i++)
		bad += play(&options, options.seed + i, rows);
	for (uint32_t i = 0; i < WAY_COUNT * PHASE_COUNT; i++) {
		struct row *row = &rows[i / PHASE_COUNT][i % PHASE_COUNT];

		if (row->error_count > 0)
			qsort(row->error_ms, row->error_count, sizeof(double), by_value);
		if (row->went_on_count > 0)
			qsort(row->went_on_ms, row->went_on_count, sizeof(double), by_value);
	}
	if (options.json)
		print_json(&options, rows, bad);
	else
		print_table(rows);
	for (uint32_t i = 0; i < WAY_COUNT * PHASE_COUNT; i++) {
		free(rows[i / PHASE_COUNT][i % PHASE_COUNT].error_ms);
		free(rows[i / PHASE_COUNT][i % PHASE_COUNT].went_on_ms);
	}
	return bad > 0;
}
