/*
 * bench_fabric.c - espalier bench fabric: asynchronous updates with and without a scheduler, and a ring, in a lab with
 * weather, beside bounds and virtual time.
 *
 * The command starts itself as workers (--as, which people do not type) through `lab run`.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/bench_fabric.h"
#include "report/complain.h"
#include "report/options.h"
#include "report/rows.h"
#include "tools/bench/fabric_stage.h"
#include "tools/bench/hub_bound.h"

#define COMMAND "bench fabric"
#define ROUNDS_MOST 20u
#define COMPUTE_PARTS 2.25 /* of the time that a model takes on a worker's link: the default of a step */

static const char *const weather_names[] = {"N0", "N1", "N2", "N3", NULL};
static const char *const straggler_names[] = {"C0", "C1", "C2", "C3", NULL};

struct given {
	const char *lab, *ways, *batch, *period;
	double hub_links, compute_ms, seconds, warmup;
	uint64_t workers, size, delay_bound, seed, rounds;
	int weather, stragglers;
	bool json, is_ideal;
	/* of a worker */
	int as;
	bool is_worker;
	uint64_t compute_ns, start_ns, warm_ns, window_ns;
};

/* One of the ways that are compared, over the rounds. */
struct contender {
	enum fabric_plan_way way;
	struct fabric_plan_bound bound;
	double model; /* updates per second in virtual time */
	double per_second[ROUNDS_MOST];
	struct fabric_stage_result sum;
	double delays; /* sum of delays of applied updates */
};

/* ---- a worker ---- */

static int take_part(const struct given *given)
{
	const struct fabric_contest contest = {.is_ring = given->as == FABRIC_PLAN_RING,
	                                       .bytes = given->size,
	                                       .compute_ns = given->compute_ns,
	                                       .stragglers = &fabric_stragglers[given->stragglers],
	                                       .seed = given->seed,
	                                       .start_ns = given->start_ns,
	                                       .warm_ns = given->warm_ns,
	                                       .window_ns = given->window_ns};
	struct fabric_contest_result result;
	struct error err;

	if (given->window_ns == 0)
		return complain_usage(COMMAND ": --as is for the command itself");
	if (bench_fabric_contest_run(&contest, &result, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	bench_fabric_stage_tell(&result);
	return EXIT_OK;
}

/* ---- comparing ---- */

static void add_run(struct contender *contender, const struct fabric_stage_result *one, uint32_t round,
                    const struct fabric_plan *plan)
{
	struct fabric_stage_result *sum = &contender->sum;

	contender->per_second[round] = (double)one->counted * (double)NS_PER_S / (double)plan->window_ns;
	contender->delays += one->delay_mean * (double)one->applied;
	sum->applied += one->applied;
	sum->at_source += one->at_source;
	sum->at_offer += one->at_offer;
	sum->at_hub += one->at_hub;
	sum->wrong += one->wrong;
	sum->idle += one->idle;
	sum->delay_most = one->delay_most > sum->delay_most ? one->delay_most : sum->delay_most;
	sum->late_seconds = one->late_seconds > sum->late_seconds ? one->late_seconds : sum->late_seconds;
}

static enum esp_status compare_all(struct fabric_stage *stage, struct contender *contenders, uint32_t count,
                                   uint32_t rounds, struct error *err)
{
	bool shows = isatty(STDERR_FILENO) == 1;
	struct fabric_stage_result result;
	enum esp_status status = ESP_OK;

	for (uint32_t run = 0; status == ESP_OK && run < rounds * count; run++) {
		struct contender *contender = &contenders[(run + run / count) % count];

		if (shows)
			fprintf(stderr, "\r\033[Kespalier: bench fabric: round %u of %u, %s", run / count + 1, rounds,
			        fabric_plan_ways[contender->way]);
		status = bench_fabric_stage_run(stage, contender->way, &result, err);
		if (status == ESP_OK)
			add_run(contender, &result, run / count, &stage->plan);
	}
	if (shows)
		fprintf(stderr, "\r\033[K");
	return status;
}

/* Bounds and the model, before a run; links have the rates of the stage. */
static enum esp_status foresee(const struct fabric_plan *plan, struct contender *contenders, uint32_t count,
                               struct error *err)
{
	enum esp_status status = ESP_OK;
	struct fabric_result model;

	for (uint32_t i = 0; i < count && status == ESP_OK; i++) {
		contenders[i].bound = bench_fabric_plan_bound(plan, contenders[i].way);
		status = bench_fabric_plan_model(plan, contenders[i].way, &model, err);
		contenders[i].model = model.per_second;
	}
	return status;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *sorted, uint32_t count)
{
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* ---- printing ---- */

static const struct column columns[] = {
	{"way", "way"},
	{"updates/s", "updates_per_second", "%.2f"},
	{"least", "least", "%.2f"},
	{"most", "most", "%.2f"},
	{"bound", "bound", "%.2f"},
	{"share", "share", "%.2f"},
	{"limit", "limit"},
	{"model", "model", "%.2f"},
	{"lab/model", "lab_beside_model", "%.2f"},
	{"beside plain", "beside_plain", "%.2fx"},
	{"delay", "delay_mean", "%.1f"},
	{"most", "delay_most"},
	{"dropped", "dropped", "%.1f%%", 100},
	{NULL, "dropped_at_source"},
	{NULL, "dropped_at_offer"},
	{NULL, "dropped_at_hub"},
	{"idle", "idle", "%.0f%%", 100},
	{"wrong", "wrong"},
	{NULL, "late_start_seconds"},
	{0},
};

static void put_contender(struct rows *rows, const struct contender *contender, uint32_t rounds, double plain)
{
	const struct fabric_stage_result *sum = &contender->sum;
	uint64_t dropped = sum->at_source + sum->at_offer + sum->at_hub, all = sum->applied + dropped;
	double middle = rounds > 0 ? median(contender->per_second, rounds) : (double)NAN;

	rows_text(rows, fabric_plan_ways[contender->way]);
	rows_double(rows, middle);
	rows_double(rows, rounds > 0 ? contender->per_second[0] : (double)NAN);
	rows_double(rows, rounds > 0 ? contender->per_second[rounds - 1] : (double)NAN);
	rows_double(rows, contender->bound.per_second);
	rows_double(rows, middle / contender->bound.per_second);
	rows_text(rows, contender->bound.limit);
	rows_double(rows, contender->model);
	rows_double(rows, middle / contender->model);
	rows_double(rows, plain > 0 ? middle / plain : (double)NAN);
	rows_double(rows, sum->applied > 0 ? contender->delays / (double)sum->applied : (double)NAN);
	rows_u64(rows, sum->delay_most);
	rows_double(rows, all > 0 ? (double)dropped / (double)all : (double)NAN);
	rows_u64(rows, sum->at_source);
	rows_u64(rows, sum->at_offer);
	rows_u64(rows, sum->at_hub);
	rows_double(rows, rounds > 0 ? sum->idle / rounds : (double)NAN);
	rows_u64(rows, sum->wrong);
	rows_double(rows, sum->late_seconds);
}

static void put_head(const struct given *given, const struct fabric_plan *plan, struct json *json)
{
	json_init(json, stdout);
	json_object_begin(json);
	json_put_string(json, "lab_rate", given->lab);
	json_put_double(json, "hub_links", given->hub_links);
	json_put_u64(json, "workers", plan->workers);
	json_put_u64(json, "bytes", plan->bytes);
	json_put_double(json, "compute_seconds", (double)plan->compute_ns / (double)NS_PER_S);
	json_put_double(json, "batch_seconds", (double)plan->batch_ns / (double)NS_PER_S);
	json_put_u64(json, "delay_bound", plan->delay_bound);
	json_put_string(json, "weather", plan->weather->name);
	json_put_double(json, "weather_seconds", (double)plan->period_ns / (double)NS_PER_S);
	json_put_string(json, "stragglers", plan->stragglers->name);
	json_put_u64(json, "seed", plan->seed);
	json_put_u64(json, "rounds", given->rounds);
	json_put_double(json, "seconds", given->seconds);
	json_key(json, "results");
}

static void say_head(const struct given *given, const struct fabric_plan *plan)
{
	char size[UNITS_TEXT], rate[UNITS_TEXT], batch[UNITS_TEXT], period[UNITS_TEXT];
	uint64_t bits = 0;

	(void)!units_parse_rate(given->lab, &bits);
	printf("%u workers at %s, the hub at %g of that; a model of %s, %.0f ms a step, batches of %s, delays up to %u; "
	       "weather %s every %s, stragglers %s, seed %llu\n",
	       plan->workers, units_format_rate(bits, rate), given->hub_links, units_format_bytes(plan->bytes, size),
	       (double)plan->compute_ns / (double)NS_PER_MS, units_format_time(plan->batch_ns, batch), plan->delay_bound,
	       plan->weather->name, units_format_time(plan->period_ns, period), plan->stragglers->name,
	       (unsigned long long)plan->seed);
}

static enum esp_status print_results(const struct given *given, const struct fabric_plan *plan,
                                     struct contender *contenders, uint32_t count)
{
	uint32_t rounds = (uint32_t)given->rounds;
	struct rows rows;
	struct json json;
	double plain = 0;

	for (uint32_t i = 0; i < count; i++) {
		qsort(contenders[i].per_second, rounds, sizeof(double), compare);
		if (contenders[i].way == FABRIC_PLAN_PLAIN && rounds > 0)
			plain = median(contenders[i].per_second, rounds);
	}
	if (given->json)
		put_head(given, plan, &json);
	else
		say_head(given, plan);
	rows_begin(&rows, columns, given->json ? &json : NULL);
	for (uint32_t i = 0; i < count; i++)
		put_contender(&rows, &contenders[i], rounds, plain);
	return rows_finish(&rows, stdout);
}

/* Exit status; what the results themselves say against the run goes to stderr. */
static int judge(const struct contender *contenders, uint32_t count)
{
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < count; i++) {
		wrong += contenders[i].sum.wrong;
		if (contenders[i].sum.late_seconds > 0)
			complain_note(COMMAND ": %s: a worker was ready %.2f s after the start",
			              fabric_plan_ways[contenders[i].way], contenders[i].sum.late_seconds);
	}
	return wrong == 0 ? EXIT_OK : complain(COMMAND ": weights were wrong");
}

/* ---- the command ---- */

static enum esp_status run_in_lab(const struct given *given, const struct fabric_plan *plan,
                                  struct contender *contenders, uint32_t count, uint64_t rate, uint64_t hub_rate,
                                  struct error *err)
{
	struct fabric_stage stage;
	enum esp_status status = bench_child_heed_signals(err);

	if (status == ESP_OK)
		status = bench_fabric_stage_open(&stage, plan, rate, hub_rate, err);
	if (status != ESP_OK)
		return status;
	status = compare_all(&stage, contenders, count, (uint32_t)given->rounds, err);
	bench_fabric_stage_close(&stage);
	return status;
}

static int run_contest(const struct given *given, const struct fabric_plan *plan, struct contender *contenders,
                       uint32_t count, uint64_t rate, uint64_t hub_rate)
{
	struct error err = {0};
	enum esp_status status = foresee(plan, contenders, count, &err);

	if (status == ESP_OK && given->rounds > 0)
		status = run_in_lab(given, plan, contenders, count, rate, hub_rate, &err);
	if (status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	if (print_results(given, plan, contenders, count) != ESP_OK)
		return complain(COMMAND ": cannot write to the standard output");
	return judge(contenders, count);
}

/* A list such as "best,plain". */
static bool parse_ways(const char *text, struct contender *contenders, uint32_t *out_count)
{
	*out_count = 0;
	for (const char *at = text; *out_count < FABRIC_PLAN_WAYS;) {
		size_t length = strcspn(at, ",");
		uint32_t way = 0;

		while (way < FABRIC_PLAN_WAYS &&
		       (strlen(fabric_plan_ways[way]) != length || strncmp(fabric_plan_ways[way], at, length) != 0))
			way++;
		if (way == FABRIC_PLAN_WAYS)
			return false;
		contenders[(*out_count)++] = (struct contender){.way = (enum fabric_plan_way)way};
		if (at[length] == '\0')
			return true;
		at += length + 1;
	}
	return false;
}

static int check_times(const struct given *given)
{
	if (!(given->seconds > 0 && given->seconds <= 3600))
		return complain_usage(COMMAND ": --seconds is above 0, up to 3600");
	if (!(given->warmup >= 0 && given->warmup <= 3600))
		return complain_usage(COMMAND ": --warmup is a number of seconds, up to 3600");
	if (!(given->compute_ms >= 0 && given->compute_ms <= 1e6))
		return complain_usage(COMMAND ": --compute-ms is from 0 to 1000000");
	return -1;
}

static int understand(const struct given *given, uint64_t *out_rate, uint64_t *out_hub_rate, struct fabric_plan *plan)
{
	if (!units_parse_rate(given->lab, out_rate) || *out_rate < 1000000)
		return complain_usage(COMMAND ": --lab: '%s' is not a rate such as 100mbit, of 1mbit or more", given->lab);
	if (!(given->hub_links >= 0.01 && given->hub_links <= 100))
		return complain_usage(COMMAND ": --hub-links is a number from 0.01 to 100");
	if (!units_parse_time(given->batch, &plan->batch_ns) || plan->batch_ns < NS_PER_MS ||
	    plan->batch_ns > 60 * NS_PER_S)
		return complain_usage(COMMAND ": --batch is a time from 1ms to 60s, not '%s'", given->batch);
	if (!units_parse_time(given->period, &plan->period_ns) || plan->period_ns < NS_PER_S)
		return complain_usage(COMMAND ": --period is a time such as 5s, of a second or more, not '%s'", given->period);
	*out_hub_rate = (uint64_t)((double)*out_rate * given->hub_links);
	double model = (double)given->size / bench_hub_bound_goodput(*out_rate);
	plan->rate = (uint64_t)bench_hub_bound_goodput(*out_rate);
	plan->hub_rate = (uint64_t)bench_hub_bound_goodput(*out_hub_rate);
	plan->is_ideal = given->is_ideal;
	plan->workers = (uint32_t)given->workers;
	plan->bytes = given->size / sizeof(float) * sizeof(float);
	plan->delay_bound = (uint32_t)(given->delay_bound > 0 ? given->delay_bound : 2 * given->workers);
	double compute = given->compute_ms > 0 ? given->compute_ms / 1e3 : COMPUTE_PARTS * model;
	plan->compute_ns = (uint64_t)(compute * (double)NS_PER_S);
	plan->weather = &fabric_weathers[given->weather];
	plan->stragglers = &fabric_stragglers[given->stragglers];
	plan->seed = given->seed;
	plan->warm_ns = (uint64_t)(given->warmup * (double)NS_PER_S);
	plan->window_ns = (uint64_t)(given->seconds * (double)NS_PER_S);
	return check_times(given);
}

static const char about[] =
	"Makes a lab whose links get other rates every few seconds, and trains there without waiting: each worker reads\n"
	"the weights, sleeps for the time of a step, and gives an update, whose effect on every weight is checked. In\n"
	"turns:\n\n"
	"  best    with the scheduler; updates are added by streaming chains\n"
	"  paper   with the scheduler; updates are added by groups\n"
	"  plain   without a scheduler\n"
	"  ring    in step: a ring allreduce of all workers\n\n"
	"Bounds: with the scheduler each worker computes, sends and gets as if it were alone; without it each update\n"
	"passes the hub's link by itself; a ring takes the slowest worker and then the slowest link. 'model' is the same\n"
	"job in virtual time (espalier sim fabric), in the same weather. Where 'idle' is near 0 the cores of this machine\n"
	"set the pace, and shares say nothing about the network.";

int cli_bench_fabric(int argc, char **argv)
{
	struct given given = {.lab = "100mbit", .ways = "best,paper,plain,ring", .batch = "20ms", .period = "5s",
	                      .hub_links = 0.25, .seconds = 10, .warmup = 3, .workers = 8, .size = 1000000, .seed = 1,
	                      .rounds = 2, .weather = 1, .stragglers = 1};
	struct contender contenders[FABRIC_PLAN_WAYS];
	struct fabric_plan plan = {0};
	uint64_t rate = 0, hub_rate = 0;
	uint32_t count;
	const struct option_spec options[] = {
		{"lab", 0, OPTION_STRING, &given.lab, "RATE", "of a worker's link (default 100mbit)"},
		{"workers", 'n', OPTION_U64, &given.workers, "N", "workers (default 8)", .min = 1, .max = FABRIC_WORKERS_MOST},
		{"hub-links", 0, OPTION_DOUBLE, &given.hub_links, "K",
	     "the hub's link has K times a worker's rate (default 0.25)"},
		{"size", 0, OPTION_BYTES, &given.size, "BYTES", "of the model (default 1 MB)", .min = 4096, .max = 1u << 30},
		{"compute-ms", 0, OPTION_DOUBLE, &given.compute_ms, "MS",
	     "a step (default 2.25 times what the model takes on a worker's link)"},
		{"batch", 'b', OPTION_STRING, &given.batch, "TIME", "of the schedulers (default 20ms)"},
		{"delay-bound", 0, OPTION_U64, &given.delay_bound, "T", "greatest delay (default twice the workers)", .min = 1,
	     .max = 100000},
		{"weather", 0, OPTION_CHOICE, &given.weather, "N0..N3", "rates of the workers' links (default N1)",
	     .choices = weather_names},
		{"period", 0, OPTION_STRING, &given.period, "TIME", "until rates are drawn anew (default 5s)"},
		{"stragglers", 0, OPTION_CHOICE, &given.stragglers, "C0..C3", "steps that are slow (default C1)",
	     .choices = straggler_names},
		{"seed", 0, OPTION_U64, &given.seed, "SEED", "of weather and stragglers (default 1)"},
		{"ways", 0, OPTION_STRING, &given.ways, "WAY,...", "which of best, paper, plain and ring (default all)"},
		{"seconds", 's', OPTION_DOUBLE, &given.seconds, "S", "that a run is measured (default 10)"},
		{"warmup", 'w', OPTION_DOUBLE, &given.warmup, "S", "before that (default 3)"},
		{"rounds", 0, OPTION_U64, &given.rounds, "N",
	     "runs of each way, in turns (default 2); 0: bounds and the model alone, without a lab", .max = ROUNDS_MOST},
		{"ideal-model", 0, OPTION_FLAG, &given.is_ideal, NULL,
	     "the model shares links fairly, chunks take no time on their way, and workers begin in step"},
		{"json", 0, OPTION_FLAG, &given.json, NULL, "print JSON"},
		{"as", 0, OPTION_CHOICE, &given.as, "WAY", "be one worker of a run: for the command itself, as all below",
	     .choices = fabric_plan_ways, .given = &given.is_worker},
		{"compute-ns", 0, OPTION_U64, &given.compute_ns, "NS", "a step"},
		{"start-ns", 0, OPTION_U64, &given.start_ns, "NS", "of the machine's clock"},
		{"warm-ns", 0, OPTION_U64, &given.warm_ns, "NS", "before what is counted"},
		{"window-ns", 0, OPTION_U64, &given.window_ns, "NS", "that is counted"},
		{0},
	};
	const struct options_usage usage = {COMMAND, "", about, options, 0, 0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	if (given.is_worker)
		return take_part(&given);
	if (!parse_ways(given.ways, contenders, &count))
		return complain_usage(COMMAND ": --ways is a list of best, paper, plain and ring, not '%s'", given.ways);
	parsed = understand(&given, &rate, &hub_rate, &plan);
	if (parsed >= 0)
		return parsed;
	return run_contest(&given, &plan, contenders, count, rate, hub_rate);
}
