/*
 * bench_hub.c - espalier bench hub: a parameter hub beside allreduce, in one interleaved run.
 *
 * The command starts itself as workers (--as, which people do not type) through `espalier run`, or `lab run`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/number.h"
#include "base/units.h"
#include "cli/bench_hub.h"
#include "math/optimizer.h"
#include "report/complain.h"
#include "report/options.h"
#include "report/rows.h"
#include "tools/bench/hub_bound.h"
#include "tools/bench/hub_stage.h"
#include "tools/sim/sim_model.h"

#define COMMAND "bench hub"
#define SIZE_DEFAULT (UINT64_C(45) * 1000 * 1000)
#define TENSOR_DEFAULT (UINT64_C(1) << 20) /* bytes of the tensors of --size: as many as it takes */
#define GLOO_VARIANTS 2u
#define CONFIGS_MOST (HUB_WAYS + GLOO_VARIANTS)
#define ROUNDS_MOST 100u
#define PATIENCE 20.0 /* times the bound of all iterations, and a minute */

static const char *const gloo_variants[GLOO_VARIANTS] = {"ring", "halving-doubling"};

struct given {
	const char *lab, *model, *optimizer, *as, *only;
	uint64_t workers, size, iterations, warmup, rounds;
	double hub_links;
	bool json;
};

struct tensors {
	uint64_t *elements;
	uint32_t count;
	uint64_t bytes;
};

/* One of the things that are compared, and its time in each round. */
struct config {
	char name[40];
	enum hub_way way;
	const char *gloo; /* NULL: a way of this program */
	double seconds[ROUNDS_MOST], least, most, optimizer, idle, bound;
	uint64_t wrong;
};

/* ---- the model ---- */

static enum esp_status take_model(const char *name, struct tensors *out, struct error *err)
{
	const struct model_options options = {.set = MODEL_PUBLIC};
	struct model model;
	enum esp_status status = sim_tool_model_open(&model, name, &options, err);

	if (status != ESP_OK)
		return status;
	out->elements = calloc(model.parameter_count, sizeof(*out->elements));
	for (uint32_t i = 0; out->elements && i < model.parameter_count; i++)
		out->elements[out->count++] = model.parameters[i].bytes / sizeof(float);
	workload_model_fini(&model);
	return out->elements ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory");
}

static enum esp_status take_size(uint64_t size, struct tensors *out, struct error *err)
{
	uint64_t count = (size + TENSOR_DEFAULT - 1) / TENSOR_DEFAULT;

	out->elements = calloc(count, sizeof(*out->elements));
	if (!out->elements)
		return error_set(err, ESP_ENOMEM, "no memory");
	for (uint64_t left = size; left >= sizeof(float);) {
		uint64_t bytes = left < TENSOR_DEFAULT ? left : TENSOR_DEFAULT;
		out->elements[out->count++] = bytes / sizeof(float);
		left -= bytes;
	}
	return ESP_OK;
}

static enum esp_status take_tensors(const struct given *given, struct tensors *out, struct error *err)
{
	*out = (struct tensors){0};
	enum esp_status status = given->model ? take_model(given->model, out, err) : take_size(given->size, out, err);

	for (uint32_t i = 0; status == ESP_OK && i < out->count; i++)
		out->bytes += out->elements[i] * sizeof(float);
	return status;
}

/* ---- a worker ---- */

static int take_part(const struct given *given, const struct tensors *tensors)
{
	struct hub_contest contest = {.elements = tensors->elements,
	                              .tensors = tensors->count,
	                              .optimizer = given->optimizer,
	                              .iterations = (uint32_t)given->iterations,
	                              .warmup = (uint32_t)given->warmup,
	                              .workers = (uint32_t)given->workers,
	                              .threads = cores_allowed()};
	struct hub_contest_result result;
	struct error err;

	while (contest.way < HUB_WAYS && strcmp(hub_way_names[contest.way], given->as) != 0)
		contest.way++;
	if (contest.way == HUB_WAYS)
		return complain_usage(COMMAND ": --as: there is no way '%s'", given->as);
	if (bench_hub_contest_run(&contest, &result, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	bench_hub_stage_tell(&result);
	return EXIT_OK;
}

/* ---- comparing ---- */

static struct config *add_config(struct config *configs, uint32_t *count, enum hub_way way, const char *gloo,
                                 double bound)
{
	struct config *config = &configs[(*count)++];

	*config = (struct config){.way = way, .gloo = gloo, .bound = bound};
	if (gloo)
		snprintf(config->name, sizeof(config->name), "gloo %s", gloo);
	else
		snprintf(config->name, sizeof(config->name), "%s", hub_way_names[way]);
	return config;
}

/* Is the configuration one of those that were asked for? */
static bool is_wanted(const struct given *given, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = given->only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return true;
	}
	return !given->only;
}

static uint32_t keep_wanted(const struct given *given, struct config *configs, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (is_wanted(given, configs[i].name))
			configs[kept++] = configs[i];
	}
	return kept;
}

/* bytes: of the model. On one machine without a lab the bound is the loop's time, known later: 0 until then. */
static uint32_t choose_configs(const struct given *given, uint64_t rate, uint64_t bytes, bool has_gloo,
                               struct config *configs)
{
	double goodput = rate ? bench_hub_bound_goodput(rate) : 0;
	uint32_t workers = (uint32_t)given->workers, count = 0;
	double colocated = rate ? bench_hub_bound_colocated(bytes, workers, goodput) : 0;
	double dedicated = rate ? bench_hub_bound_hub(bytes, workers, given->hub_links, goodput) : 0;

	add_config(configs, &count, HUB_WAY_HUB, NULL, dedicated);
	if (rate)
		add_config(configs, &count, HUB_WAY_MEAN, NULL, dedicated);
	if (!rate)
		add_config(configs, &count, HUB_WAY_LOOP, NULL, 0);
	if (workers == 1)
		return keep_wanted(given, configs, count);
	if (!rate) {
		add_config(configs, &count, HUB_WAY_MAPPED, NULL, 0);
		add_config(configs, &count, HUB_WAY_ALONE, NULL, 0);
	}
	if (rate)
		add_config(configs, &count, HUB_WAY_SHARDS, NULL, colocated);
	add_config(configs, &count, HUB_WAY_FLAT, NULL, colocated);
	add_config(configs, &count, HUB_WAY_ALLREDUCE, NULL, colocated);
	for (uint32_t i = 0; has_gloo && i < GLOO_VARIANTS; i++)
		add_config(configs, &count, HUB_WAYS, gloo_variants[i], colocated);
	return keep_wanted(given, configs, count);
}

static enum esp_status run_config(const struct hub_stage *stage, struct config *config, uint64_t bytes, uint32_t round,
                                  struct error *err)
{
	struct hub_contest_result result;
	enum esp_status status = config->gloo ? bench_hub_stage_run_gloo(stage, config->gloo, bytes, &result, err)
	                                      : bench_hub_stage_run(stage, config->way, &result, err);

	if (status != ESP_OK)
		return status;
	config->seconds[round] = result.seconds;
	config->least = round == 0 || result.least < config->least ? result.least : config->least;
	config->most = result.most > config->most ? result.most : config->most;
	config->optimizer += result.optimizer_seconds;
	config->idle += result.idle;
	config->wrong += result.wrong;
	return ESP_OK;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/*
 * Medians over the rounds into seconds[0]. Gloo's program has no optimizer: it gets the time that the optimizer took on
 * the same nodes after this library's allreduce.
 */
static void summarize(struct config *configs, uint32_t count, uint32_t rounds)
{
	double optimizer = 0, loop = 0;

	for (uint32_t i = 0; i < count; i++) {
		configs[i].optimizer /= rounds;
		configs[i].idle /= rounds;
		configs[i].seconds[0] = median(configs[i].seconds, rounds);
		if (!configs[i].gloo && configs[i].way == HUB_WAY_ALLREDUCE)
			optimizer = configs[i].optimizer;
		if (!configs[i].gloo && configs[i].way == HUB_WAY_LOOP)
			loop = configs[i].seconds[0];
	}
	for (uint32_t i = 0; i < count; i++) {
		if (configs[i].gloo) {
			configs[i].optimizer = optimizer;
			configs[i].seconds[0] += optimizer;
			configs[i].least += optimizer;
			configs[i].most += optimizer;
		}
		if (configs[i].bound == 0)
			configs[i].bound = loop;
	}
}

static enum esp_status compare_all(const struct hub_stage *stage, struct config *configs, uint32_t count,
                                   uint32_t rounds, uint64_t bytes, struct error *err)
{
	bool shows = isatty(STDERR_FILENO) == 1;
	enum esp_status status = ESP_OK;

	for (uint32_t round = 0; status == ESP_OK && round < rounds; round++) {
		for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
			struct config *config = &configs[(i + round) % count];
			if (shows)
				fprintf(stderr, "\r\033[Kespalier: bench hub: round %u of %u, %s", round + 1, rounds, config->name);
			status = run_config(stage, config, bytes, round, err);
		}
	}
	if (shows)
		fprintf(stderr, "\r\033[K");
	return status;
}

/* ---- printing ---- */

static const struct column columns[] = {
	{"config", "config"},
	{NULL, "workers"},
	{"seconds", "seconds", "%.4f"},
	{"least", "least_seconds", "%.4f"},
	{"most", "most_seconds", "%.4f"},
	{"bound", "bound_seconds", "%.4f"},
	{"share of bound", "share", "%.3f"},
	{"beside the hub", "beside_hub", "%.2fx"},
	{"optimizer", "optimizer_seconds", "%.4f"},
	{"idle", "idle", "%.0f%%", 100},
	{"wrong", "wrong"},
	{0},
};

static enum esp_status print_results(const struct given *given, const struct config *configs, uint32_t count,
                                     uint64_t bytes)
{
	struct rows rows;
	struct json json;
	char size[UNITS_TEXT];

	if (given->json) {
		json_init(&json, stdout);
		json_object_begin(&json);
		json_put_string(&json, "model", given->model);
		json_put_u64(&json, "bytes", bytes);
		json_put_string(&json, "optimizer", given->optimizer);
		json_put_string(&json, "lab_rate", given->lab);
		json_put_double(&json, "hub_links", given->hub_links);
		json_put_u64(&json, "rounds", given->rounds);
		json_put_u64(&json, "iterations", given->iterations);
		json_key(&json, "results");
	} else {
		printf("%llu workers, model %s of %s, %s, %s\n", (unsigned long long)given->workers,
		       given->model ? given->model : "of equal tensors", units_format_bytes(bytes, size), given->optimizer,
		       given->lab ? "a lab" : "this machine");
	}
	rows_begin(&rows, columns, given->json ? &json : NULL);
	for (uint32_t i = 0; i < count; i++) {
		const struct config *config = &configs[i];
		rows_text(&rows, config->name);
		rows_u64(&rows, given->workers);
		rows_double(&rows, config->seconds[0]);
		rows_double(&rows, config->least);
		rows_double(&rows, config->most);
		rows_double(&rows, config->bound);
		rows_double(&rows, config->bound / config->seconds[0]);
		if (configs[0].way == HUB_WAY_HUB) /* it stands first, if it was run */
			rows_double(&rows, config->seconds[0] / configs[0].seconds[0]);
		else
			rows_none(&rows);
		rows_double(&rows, config->optimizer);
		if (config->gloo)
			rows_none(&rows);
		else
			rows_double(&rows, config->idle);
		rows_u64(&rows, config->wrong);
	}
	return rows_finish(&rows, stdout);
}

static uint64_t count_wrong(const struct config *configs, uint32_t count)
{
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < count; i++)
		wrong += configs[i].wrong;
	return wrong;
}

/* ---- the command ---- */

static int compare_ways(const struct given *given, uint64_t rate, const struct tensors *tensors)
{
	char size[24];
	const char *model[3] = {given->model ? "--model" : "--size", given->model, NULL};
	struct config configs[CONFIGS_MOST];
	struct hub_stage stage;
	struct error err = {0};
	double bound =
		rate ? bench_hub_bound_colocated(tensors->bytes, (uint32_t)given->workers + 1, bench_hub_bound_goodput(rate))
			 : 1;

	snprintf(size, sizeof(size), "%llu", (unsigned long long)tensors->bytes);
	if (!given->model)
		model[1] = size;
	const struct hub_stage_config config = {
		.rate = rate,
		.hub_links = given->hub_links,
		.workers = (uint32_t)given->workers,
		.optimizer = given->optimizer,
		.model = model,
		.has_shards = rate > 0 && given->workers > 1 && is_wanted(given, hub_way_names[HUB_WAY_SHARDS]),
		.iterations = (uint32_t)given->iterations,
		.warmup = (uint32_t)given->warmup,
		.seconds = 60 + PATIENCE * bound * (double)(given->iterations + given->warmup),
	};
	if (bench_hub_stage_open(&stage, &config, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	uint32_t count = choose_configs(given, rate, tensors->bytes, stage.gloo[0] != '\0', configs);
	if (!stage.gloo[0] && given->workers > 1 && !given->only)
		complain_note(COMMAND ": Gloo is left out: its program %s is not there ('make bench' builds it)",
		              "peers/allreduce.gloo");
	if (count == 0) {
		bench_hub_stage_close(&stage);
		return complain_usage(COMMAND ": --only: '%s' names no way that there is here", given->only);
	}
	enum esp_status status = compare_all(&stage, configs, count, (uint32_t)given->rounds, tensors->bytes, &err);
	bench_hub_stage_close(&stage);
	if (status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	summarize(configs, count, (uint32_t)given->rounds);
	if (print_results(given, configs, count, tensors->bytes) != ESP_OK)
		return complain(COMMAND ": cannot write to the standard output");
	return count_wrong(configs, count) == 0 ? EXIT_OK : complain(COMMAND ": weights were wrong");
}

static int understand(struct given *given, uint64_t *out_rate)
{
	struct optimizer optimizer;
	struct error err;

	*out_rate = 0;
	if (optimizer_parse(given->optimizer, &optimizer, &err) != ESP_OK)
		return complain_usage(COMMAND ": --optimizer: %s", err.text);
	if (given->lab && !units_parse_rate(given->lab, out_rate))
		return complain_usage(COMMAND ": --lab: '%s' is not a rate such as 100mbit or 1gbit", given->lab);
	if (!(given->hub_links > 0 && given->hub_links <= 1000))
		return complain_usage(COMMAND ": --hub-links is a number above 0, up to 1000");
	return -1;
}

int cli_bench_hub(int argc, char **argv)
{
	struct given given = {.workers = 8,
	                      .size = SIZE_DEFAULT,
	                      .iterations = 3,
	                      .warmup = 1,
	                      .rounds = 3,
	                      .hub_links = 8,
	                      .optimizer = "sgd lr=0.125 momentum=0.5"};
	struct tensors tensors;
	struct error err;
	uint64_t rate;
	const struct option_spec options[] = {
		{"lab", 0, OPTION_STRING, &given.lab, "RATE",
	     "make a lab, a rack of workers whose links have this rate, and remove it afterwards"},
		{"workers", 'n', OPTION_U64, &given.workers, "N", "workers (default 8)", .min = 1, .max = 64},
		{"hub-links", 0, OPTION_DOUBLE, &given.hub_links, "K",
	     "the hub's link in the lab has K times a worker's rate (default 8)"},
		{"model", 0, OPTION_STRING, &given.model, "NAME",
	     "a model of espalier sim models, or a file (default: equal tensors of --size)"},
		{"size", 0, OPTION_BYTES, &given.size, "BYTES", "of the model (default 45 MB, as ResNet-18)", .min = 4096},
		{"optimizer", 'o', OPTION_STRING, &given.optimizer, "TEXT",
	     "as of hub create (default \"sgd lr=0.125 momentum=0.5\")"},
		{"only", 0, OPTION_STRING, &given.only, "NAME,...", "not all of the ways below, but these"},
		{"iters", 0, OPTION_U64, &given.iterations, "N", "timed iterations of a run (default 3)", .min = 1, .max = 100},
		{"warmup", 'w', OPTION_U64, &given.warmup, "N", "iterations before them (default 1)", .max = 100},
		{"rounds", 0, OPTION_U64, &given.rounds, "N", "runs of each configuration, in turns (default 3)", .min = 1,
	     .max = ROUNDS_MOST},
		{"json", 0, OPTION_FLAG, &given.json, NULL, "print JSON"},
		{"as", 0, OPTION_STRING, &given.as, "WAY", "be one worker of a run, under a launcher: for the command itself"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Times iterations of training, each a model's gradients in and optimized weights out, and checks every "
	    "weight:\n\n"
		"  hub        a parameter hub: on a host of its own in the lab, else on this machine over the loopback\n"
		"  mean       in a lab: as hub, without an optimizer: what optimizing costs\n"
		"  shards     in a lab: a hub on each worker's host, which share out the chunks\n"
		"  flat       no hub: allreduce by plan flat, in which each worker sums a part, and the optimizer on each\n"
		"  mapped     without a lab: as hub, but gradients and weights lie in memory that the workers of a host share\n"
		"  alone      without a lab: as hub, but each worker pushes by itself, and not with the others of its host\n"
		"  allreduce  the same by the plan that Espalier chooses\n"
		"  gloo ...   Gloo's algorithms, with the time that the optimizer takes on a worker\n"
		"  loop       without a lab: threads that sum and optimize the same bytes in memory, the bound there\n\n"
		"The bound in a lab is the least time by the bytes that links carry, with TCP's headers. Where links are not\n"
		"full ('idle' is near 0) the cores of this machine set the pace, and shares say nothing about the network.",
		options,
		0,
		0};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed < 0)
		parsed = understand(&given, &rate);
	if (parsed >= 0)
		return parsed;
	if (take_tensors(&given, &tensors, &err) != ESP_OK)
		return complain_usage(COMMAND ": --model: %s", err.text);
	int exit_status = given.as ? take_part(&given, &tensors) : compare_ways(&given, rate, &tensors);
	free(tensors.elements);
	return exit_status;
}
