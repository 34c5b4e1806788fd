#include "tools/sim/sim_case.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/infile.h"
#include "base/units.h"
#include "base/word.h"
#include "report/complain.h"
#include "sim/workload/accelerator.h"
#include "tools/sim/sim_model.h"

#define GO_ON (-1)

static bool is_positive(double value)
{
	return value > 0 && !isinf(value);
}

static bool is_rate(double gbps)
{
	return gbps >= 1e-6 && gbps <= 1e6;
}

/* The first given option that contradicts --topology; NULL: none was given. */
static const char *made_network(const struct sim_case *c)
{
	return c->gbps_given          ? "--gbps"
	       : c->server_gbps_given ? "--server-gbps"
	       : c->racks_given       ? "--racks"
	       : c->oversubscribe_given ? "--oversubscribe"
	       : c->delay_given       ? "--delay"
	                              : NULL;
}

int sim_tool_case_check(struct sim_case *c)
{
	double flops;
	struct error err = {0};
	if (!c->model == !c->traces)
		return complain_usage(
			"%s: name a model with --model (espalier sim models lists them), or a folder with --traces", c->command);
	if (c->traces && (c->set_given || c->accelerator || c->batch || c->value_bytes))
		return complain_usage("%s: --set, --accelerator, --batch and --value-bytes are for models; espalier sim traces "
		                      "scale changes traces",
		                      c->command);
	if (!is_rate(c->gbps))
		return complain_usage("%s: --gbps is a rate from 0.000001 to 1000000", c->command);
	if (c->server_gbps != 0 && !is_rate(c->server_gbps))
		return complain_usage("%s: --server-gbps is a rate from 0.000001 to 1000000", c->command);
	if (!is_positive(c->compute) || !is_positive(c->oversubscribe))
		return complain_usage("%s: --compute and --oversubscribe must be above 0", c->command);
	if (!units_parse_delay(c->delay, &c->delay_ns))
		return complain_usage("%s: --delay is a time such as 5us, up to an hour; a number alone counts microseconds",
		                      c->command);
	if (c->topology && made_network(c))
		return complain_usage("%s: --topology FILE says what the network is; %s is for one that is made", c->command,
		                      made_network(c));
	if (!(c->jitter >= 0 && c->jitter <= 1e3))
		return complain_usage("%s: --jitter is a share such as 0.1, from 0 to 1000", c->command);
	if (c->traces && c->jitter > 0)
		return complain_usage("%s: --jitter is for models; traces have the times that were recorded", c->command);
	if (c->no_barrier && c->iterations == 1)
		return complain_usage("%s: --no-barrier needs at least two iterations: what is measured lies between them",
		                      c->command);
	if (c->accelerator && workload_accelerator_rate(c->accelerator, &flops, &err) != ESP_OK)
		return complain_usage("%s: --accelerator: %s", c->command, err.text);
	return GO_ON;
}

/* ---- reading ---- */

/* Opens the set of values that was asked for, or the last one that the model has. */
static enum esp_status open_model(const struct sim_case *c, struct model *model, struct error *err)
{
	struct model_options options = {
		.set = (enum model_set)c->set, .batch = (uint32_t)c->batch, .value_bytes = (uint32_t)c->value_bytes};
	enum esp_status status = c->accelerator ? workload_accelerator_rate(c->accelerator, &options.flops, err) : ESP_OK;
	if (status != ESP_OK || c->set_given)
		return status == ESP_OK ? sim_tool_model_open(model, c->model, &options, err) : status;
	status = ESP_EINVAL;
	for (int set = MODEL_CALIBRATED; status == ESP_EINVAL && set >= MODEL_PUBLIC; set--) {
		options.set = (enum model_set)set;
		workload_model_fini(model);
		status = sim_tool_model_open(model, c->model, &options, err);
	}
	return status;
}

static enum esp_status open_topology(const char *path, struct topology **out, struct error *err)
{
	struct infile file;
	struct error why = {0};
	enum esp_status status = infile_open(&file, path, err);
	if (status != ESP_OK)
		return status;
	status = topology_parse(file.text, file.length, out, &why);
	infile_close(&file);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "%.100s: %.150s", path, why.text);
}

enum esp_status sim_tool_source_open(struct sim_source *source, struct sim_case *c, struct error *err)
{
	struct traces traces = {0};
	enum esp_status status = ESP_OK;
	*source = (struct sim_source){.is_replay = c->traces != NULL};
	if (source->is_replay) {
		struct error why = {0};
		status = workload_traces_load(&traces, c->traces, err);
		if (status == ESP_OK && (status = workload_replay_init(&source->replay, &traces, &why)) != ESP_OK)
			(void)error_set(err, status, "%.60s: %.180s", c->traces, why.text);
		workload_traces_fini(&traces);
		if (status == ESP_OK && !c->servers_given)
			c->servers = source->replay.server_count;
	} else {
		status = open_model(c, &source->replay.model, err);
	}
	return status == ESP_OK && c->topology ? open_topology(c->topology, &source->topology, err) : status;
}

void sim_tool_source_close(struct sim_source *source)
{
	workload_replay_fini(&source->replay);
	topology_close(source->topology);
	*source = (struct sim_source){0};
}

enum esp_status sim_tool_source_load(const struct sim_source *source, const struct sim_case *c, struct load *load,
                                     struct error *err)
{
	uint32_t workers = (uint32_t)c->workers;
	if (source->is_replay)
		return workload_load_init_replay(load, &source->replay, workers, c->seed, err);
	enum esp_status status = workload_load_init(load, &source->replay.model, workers, c->seed, err);
	if (status == ESP_OK && c->jitter > 0)
		workload_load_jitter(load, c->jitter, c->seed);
	return status;
}

/* ---- running and describing ---- */

struct trial sim_tool_case_trial(const struct sim_case *c, const struct sim_source *source, const struct load *load,
                                 const struct mechanism *mechanism)
{
	return (struct trial){
		.train = {.load = load,
	                  .mechanism = mechanism,
	                  .topology = source->topology,
	                  .servers = (uint32_t)c->servers,
	                  .even_split = c->even_split,
	                  .block = c->block,
	                  .no_barrier = c->no_barrier,
	                  .fluid = c->fluid,
	                  .cut_through_sums = c->cut_through,
	                  .split = (uint32_t)c->split,
	                  .compute = c->compute,
	                  .iterations = (uint32_t)c->iterations},
		.gbps = c->gbps,
		.server_gbps = c->server_gbps,
		.racks = (uint32_t)c->racks,
		.oversubscribe = c->oversubscribe,
		.delay_s = (double)c->delay_ns * 1e-9,
	};
}

__attribute__((format(printf, 2, 3)))
static void add(char text[SIM_CASE_TEXT], const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;
	va_start(args, format);
	vsnprintf(text + used, SIM_CASE_TEXT - used, format, args);
	va_end(args);
}

static bool is_varied(const char *varied, const char *option)
{
	return varied && strcmp(varied, option) == 0;
}

/* Adds the options that change a result and are not at their defaults. */
static void add_unusual(const struct sim_case *c, const char *varied, char text[SIM_CASE_TEXT])
{
	if (!c->topology && c->server_gbps > 0)
		add(text, ", %g Gbps at servers", c->server_gbps);
	if (!c->topology && c->racks > 1)
		add(text, ", %llu racks", (unsigned long long)c->racks);
	if (!c->topology && c->oversubscribe != 1)
		add(text, ", oversubscribed %g:1", c->oversubscribe);
	if (!c->topology && c->delay_ns > 0)
		add(text, ", %g us", (double)c->delay_ns * 1e-3);
	if (c->servers != 1 && !is_varied(varied, "servers"))
		add(text, ", %llu servers", (unsigned long long)c->servers);
	if (c->accelerator)
		add(text, ", accelerator %.40s", c->accelerator);
	if (c->batch)
		add(text, ", batch %llu", (unsigned long long)c->batch);
	if (c->value_bytes)
		add(text, ", %llu byte%s a value", (unsigned long long)c->value_bytes, plural(c->value_bytes));
	if (c->compute != 1 && !is_varied(varied, "compute"))
		add(text, ", computing %gx", c->compute);
	if (c->split)
		add(text, ", %llu message%s a parameter", (unsigned long long)c->split, plural(c->split));
	add(text, "%s%s%s%s%s", c->even_split ? ", even split" : "", c->block ? ", block" : "",
	    c->no_barrier ? ", no barrier" : "", c->fluid ? ", fluid" : "", c->cut_through ? ", cut through" : "");
	if (c->iterations)
		add(text, ", %llu iteration%s", (unsigned long long)c->iterations, plural(c->iterations));
	if (c->jitter > 0)
		add(text, ", jitter %g", c->jitter);
	if (c->seed)
		add(text, ", seed %llu", (unsigned long long)c->seed);
}

const char *sim_tool_case_text(const struct sim_case *c, const struct sim_source *source, const char *varied,
                               char text[SIM_CASE_TEXT])
{
	const struct model *model = &source->replay.model;
	text[0] = '\0';
	if (source->is_replay)
		add(text, "traces of %.60s in %.100s", model->name[0] ? model->name : "a training", c->traces);
	else
		add(text, "%.100s (%s values%s)", model->name, model_set_names[model->set],
		    model->times_assumed ? ", times assumed" : "");
	if (!is_varied(varied, "workers"))
		add(text, ", %llu worker%s", (unsigned long long)c->workers, plural(c->workers));
	if (c->topology)
		add(text, ", %.150s", c->topology);
	else if (!is_varied(varied, "gbps"))
		add(text, ", %g Gbps", c->gbps);
	add_unusual(c, varied, text);
	return text;
}

/* ---- notes ---- */

static uint32_t iterations_of(const struct sim_case *c)
{
	return c->iterations ? (uint32_t)c->iterations : c->no_barrier ? 3 : 1;
}

static void note_coverage(const struct sim_case *c, const struct sim_source *source, char text[SIM_CASE_TEXT])
{
	uint32_t iterations = iterations_of(c);
	struct replay_coverage found = workload_replay_coverage(&source->replay, (uint32_t)c->workers, iterations);
	if (found.drawn > 0)
		add(text,
		    "Recorded are %u of %llu worker%s and %u of %u iteration%s; %llu of %llu iterations of a worker are drawn "
		    "from these.",
		    found.workers, (unsigned long long)c->workers, plural(c->workers), found.iterations, iterations,
		    plural(iterations), (unsigned long long)found.drawn, (unsigned long long)c->workers * iterations);
	else if (c->seed)
		add(text, "The seed changes nothing: every worker and iteration was recorded.");
}

const char *sim_tool_case_notes(const struct sim_case *c, const struct sim_source *source, char text[SIM_CASE_TEXT])
{
	const struct model *model = &source->replay.model;
	text[0] = '\0';
	if (source->is_replay)
		note_coverage(c, source, text);
	else if (c->seed && c->jitter == 0 && !model->distribution_order && model->slowest_factor == 1 &&
	         model->worker_factor_count == 0)
		add(text, "The seed changes nothing: the model has neither an order of sending nor speeds of workers to draw; "
		          "--jitter X makes some.");
	if (!c->topology && c->oversubscribe != 1 && c->racks == 1)
		add(text, "%sThe oversubscription changes nothing: there is one rack, and so no uplink; --racks N makes more.",
		    text[0] ? "\n" : "");
	return text;
}

/* Puts the network: the topology, or the options that it was made from. */
static void put_network(struct json *json, const struct sim_case *c, bool with_gbps)
{
	if (c->topology) {
		json_put_string(json, "topology", c->topology);
		return;
	}
	if (with_gbps)
		json_put_double(json, "gbps", c->gbps);
	if (with_gbps || c->server_gbps > 0)
		json_put_double(json, "server_gbps", c->server_gbps > 0 ? c->server_gbps : c->gbps);
	json_put_u64(json, "racks", c->racks);
	json_put_double(json, "oversubscribe", c->oversubscribe);
	json_put_double(json, "delay_us", (double)c->delay_ns * 1e-3);
}

void sim_tool_case_put(struct json *json, const struct sim_case *c, const struct sim_source *source, const char *varied)
{
	const struct model *model = &source->replay.model;
	char text[SIM_CASE_TEXT];
	json_put_string(json, "model", model->name);
	if (c->traces)
		json_put_string(json, "traces", c->traces);
	else
		json_put_string(json, "set", model_set_names[model->set]);
	json_put_bool(json, "times_assumed", model->times_assumed);
	if (c->accelerator)
		json_put_string(json, "accelerator", c->accelerator);
	if (!c->traces)
		json_put_u64(json, "batch", model->batch);
	if (c->value_bytes)
		json_put_u64(json, "value_bytes", c->value_bytes);
	if (!is_varied(varied, "workers"))
		json_put_u64(json, "workers", c->workers);
	if (!is_varied(varied, "servers"))
		json_put_u64(json, "servers", c->servers);
	put_network(json, c, !is_varied(varied, "gbps"));
	if (!is_varied(varied, "compute"))
		json_put_double(json, "compute", c->compute);
	json_put_u64(json, "iterations", iterations_of(c));
	if (c->split)
		json_put_u64(json, "split", c->split);
	json_put_bool(json, "even_split", c->even_split);
	json_put_bool(json, "block", c->block);
	json_put_bool(json, "barrier", !c->no_barrier);
	json_put_bool(json, "fluid", c->fluid);
	json_put_bool(json, "cut_through", c->cut_through);
	json_put_double(json, "jitter", c->jitter);
	json_put_u64(json, "seed", c->seed);
	if (source->is_replay) {
		struct replay_coverage found =
			workload_replay_coverage(&source->replay, (uint32_t)c->workers, iterations_of(c));
		json_put_u64(json, "recorded_workers", found.workers);
		json_put_u64(json, "recorded_iterations", found.iterations);
		json_put_u64(json, "drawn", found.drawn);
	}
	if (sim_tool_case_notes(c, source, text)[0])
		json_put_string(json, "notes", text);
}

/* ---- mechanisms ---- */

static const char *mechanism_name(const void *list, size_t index)
{
	(void)list;
	return workload_mechanism_at(index) ? workload_mechanism_at(index)->name : NULL;
}

int sim_tool_case_mechanism(const struct sim_case *c, const char *name, const struct mechanism **out)
{
	*out = workload_mechanism_find(name);
	if (*out)
		return GO_ON;
	const char *near = word_nearest(name, mechanism_name, NULL);
	return near ? complain_usage("%s: there is no mechanism '%s'; did you mean '%s'?", c->command, name, near)
	            : complain_usage("%s: there is no mechanism '%s'; see espalier sim run --help", c->command, name);
}

static int choose(const struct sim_case *c, struct sim_choice *choice)
{
	char text[512];
	char *rest = text;
	if (strcmp(choice->names, "all") == 0) {
		for (; choice->count < SIM_MECHANISMS_MAX && workload_mechanism_at(choice->count); choice->count++)
			choice->list[choice->count] = workload_mechanism_at(choice->count);
		return GO_ON;
	}
	if ((size_t)snprintf(text, sizeof text, "%s", choice->names) >= sizeof text)
		return complain_usage("%s: --mechanism: too many names", c->command);
	while (rest) {
		if (choice->count == SIM_MECHANISMS_MAX)
			return complain_usage("%s: --mechanism: too many names", c->command);
		int status = sim_tool_case_mechanism(c, strsep(&rest, ","), &choice->list[choice->count++]);
		if (status != GO_ON)
			return status;
	}
	return GO_ON;
}

int sim_tool_case_parse(const struct options_usage *usage, int *argc, char **argv, struct sim_case *c,
                        struct sim_choice *choice)
{
	int status = options_parse(usage, argc, argv);
	if (status == GO_ON)
		status = sim_tool_case_check(c);
	return status == GO_ON ? choose(c, choice) : status;
}

enum esp_status sim_tool_case_try(const struct trial *trial, struct sim_choice *choice, struct train_result *out,
                                  struct error *err)
{
	enum esp_status status = sim_trial_run(trial, out, err);
	if (status != ESP_EINVAL)
		return status;
	if (!choice->left_out[0])
		snprintf(choice->left_out, sizeof choice->left_out, "%.40s: %.200s", trial->train.mechanism->name, err->text);
	error_clear(err);
	*out = (struct train_result){.iteration_s = NAN};
	return ESP_OK;
}

int sim_tool_case_end(const struct sim_case *c, const struct sim_choice *choice, enum esp_status status,
                      const struct error *err)
{
	if (status == ESP_OK && choice->left_out[0])
		complain_note("%s: some are left out; %s", c->command, choice->left_out);
	return complain_end(c->command, status, err);
}
