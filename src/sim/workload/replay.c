#include "sim/workload/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/rng.h"

#define NONE UINT32_MAX

/* A parameter while the two kinds of file are matched. */
struct item {
	const char *name;     /* its distributed name; NULL: it is not distributed */
	const char *gradient; /* name of its gradient; NULL: it has none */
	uint64_t bytes;
	uint32_t server;
	uint32_t line;  /* in the distribution file; 0: there is none */
	uint32_t layer; /* position in the forward order; NONE: unknown */
};

struct matching {
	const struct traces *traces;
	struct item *items;
	uint32_t count;
	uint32_t *gradient_item; /* by event of the first worker's file */
	/* all gradients have one destination, and there is at most one server: the name does not matter */
	bool has_one_way;
};

/* ---- lookup by name ---- */

struct named {
	const char *name;
	uint32_t index;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static uint32_t find(const struct named *list, uint32_t count, const char *name)
{
	const struct named key = {name, 0};
	const struct named *found = list && count ? bsearch(&key, list, count, sizeof(*list), by_name) : NULL;
	return found ? found->index : NONE;
}

/* The server of a destination: by its own name or its file's, or by the number at the end of the destination. */
static uint32_t find_server(const struct matching *matching, const char *destination)
{
	const struct traces *traces = matching->traces;
	size_t length = strlen(destination), digits = 0;
	uint64_t number, of_server;
	for (uint32_t i = 0; i < traces->server_count; i++)
		if (strcmp(traces->servers[i].trace.events[0].source, destination) == 0 ||
		    strcmp(traces->servers[i].name, destination) == 0)
			return i;
	while (digits < length && destination[length - digits - 1] >= '0' && destination[length - digits - 1] <= '9')
		digits++;
	if (digits > 0 && number_parse_u64(destination + length - digits, digits, &number))
		for (uint32_t i = 0; i < traces->server_count; i++)
			if (number_parse_u64(traces->servers[i].name, strlen(traces->servers[i].name), &of_server) &&
			    of_server == number)
				return i;
	return traces->server_count == 0 || matching->has_one_way ? 0 : NONE;
}

static bool has_one_way(const struct traces *traces)
{
	const struct trace *first = &traces->workers[0].trace;
	for (uint32_t i = 1; i < first->count; i++)
		if (strcmp(first->events[i].destination, first->events[0].destination) != 0)
			return false;
	return traces->server_count <= 1;
}

/* ---- matching the two kinds ---- */

static void read_distribution(struct matching *matching)
{
	const struct traces *traces = matching->traces;
	for (uint32_t s = 0; s < traces->server_count; s++)
		for (uint32_t i = 0; i < traces->servers[s].trace.count; i++) {
			const struct trace_event *event = &traces->servers[s].trace.events[i];
			matching->items[matching->count++] = (struct item){event->parameter, NULL, event->bytes, s, event->line,
			                                                   NONE};
		}
	if (traces->server_count > 0)
		return;
	const struct trace *first = &traces->workers[0].trace;
	for (uint32_t i = first->count; i-- > 0;)
		matching->items[matching->count++] = (struct item){first->events[i].parameter, NULL, first->events[i].bytes, 0,
		                                                   0, NONE};
}

/* The forward order of distributed parameters, before gradients are matched by it. */
static enum esp_status match_layers(struct matching *matching, bool *out_found, struct error *err)
{
	const struct traces *traces = matching->traces;
	struct named *layers = calloc((size_t)traces->layer_count + 1, sizeof(*layers));
	char shown[QUOTE_TEXT];
	enum esp_status status = ESP_OK;
	if (!layers)
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	for (uint32_t i = 0; i < traces->layer_count; i++)
		layers[i] = (struct named){traces->layers[i].name, i};
	qsort(layers, traces->layer_count, sizeof(*layers), by_name);
	for (uint32_t i = 1; i < traces->layer_count && status == ESP_OK; i++)
		if (strcmp(layers[i - 1].name, layers[i].name) == 0)
			status = error_set(err, ESP_EPARSE, "model.json:%d: \"forward_order\" names %s twice", traces->order_line,
			                   quote(layers[i].name, strlen(layers[i].name), shown));
	for (uint32_t i = 0; status == ESP_OK && i < matching->count; i++) {
		struct item *item = &matching->items[i];
		for (int kind = 0; kind < 2 && item->layer == NONE; kind++) {
			const char *name = kind == 0 ? item->name : item->gradient;
			item->layer = name ? find(layers, traces->layer_count, name) : NONE;
		}
		if (item->layer != NONE)
			out_found[item->layer] = true;
	}
	free(layers);
	return status;
}

static struct named *names_of_items(const struct matching *matching)
{
	struct named *names = calloc((size_t)matching->count + 1, sizeof(*names));
	for (uint32_t i = 0; names && i < matching->count; i++)
		names[i] = (struct named){matching->items[i].name, i};
	if (names)
		qsort(names, matching->count, sizeof(*names), by_name);
	return names;
}

/*
 * Of the parameters with this server and size and without a gradient: the last in the forward order, or else in
 * the order of sending.
 */
static uint32_t match_by_size(const struct matching *matching, uint32_t distributed, uint32_t server, uint64_t bytes)
{
	uint32_t best = NONE;
	for (uint32_t i = 0; i < distributed; i++) {
		const struct item *item = &matching->items[i];
		if (item->gradient || item->server != server || item->bytes != bytes)
			continue;
		if (best == NONE || matching->items[best].layer == NONE ||
		    (item->layer != NONE && item->layer > matching->items[best].layer))
			best = i;
	}
	return best;
}

/* Both files have a parameter of this name, so they have to agree about it. */
static enum esp_status check_same_name(const struct matching *matching, const struct trace_event *event,
                                       const struct item *item, struct error *err)
{
	const struct traces *traces = matching->traces;
	char file[TRACES_FILE_NAME], other[TRACES_FILE_NAME], shown[QUOTE_TEXT];
	if (traces->server_count == 0)
		return ESP_OK;
	workload_traces_worker_file(&traces->workers[0], file);
	workload_traces_server_file(&traces->servers[item->server], other);
	quote(event->parameter, strlen(event->parameter), shown);
	if (item->bytes != event->bytes)
		return error_set(err, ESP_EPARSE, "%s:%" PRIu32 ": %s has %" PRIu64 " bytes here and %" PRIu64 " in %s:%"
		                 PRIu32, file, event->line, shown, event->bytes, item->bytes, other, item->line);
	if (item->server != find_server(matching, event->destination))
		return error_set(err, ESP_EPARSE, "%s:%" PRIu32
		                 ": %s goes to another server than that which sends it in %s:%" PRIu32, file, event->line,
		                 shown, other, item->line);
	return ESP_OK;
}

static enum esp_status check_destination(const struct matching *matching, const struct trace_event *event,
                                         struct error *err)
{
	char file[TRACES_FILE_NAME], shown[QUOTE_TEXT];
	if (find_server(matching, event->destination) != NONE)
		return ESP_OK;
	return error_set(err, ESP_EPARSE,
	                 "%s:%" PRIu32 ": the destination %s is no server of the distribution files: its own is missing",
	                 workload_traces_worker_file(&matching->traces->workers[0], file), event->line,
	                 quote(event->destination, strlen(event->destination), shown));
}

/* Matches gradients with parameters of the same name. *out_count: their number. */
static enum esp_status match_by_name(struct matching *matching, uint32_t *out_count, struct error *err)
{
	const struct trace *first = &matching->traces->workers[0].trace;
	uint32_t distributed = matching->count;
	struct named *names = names_of_items(matching);
	enum esp_status status = names ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for traces");
	*out_count = 0;
	for (uint32_t i = 0; i < first->count && status == ESP_OK; i++) {
		const struct trace_event *event = &first->events[i];
		uint32_t at = find(names, distributed, event->parameter);
		status = check_destination(matching, event, err);
		if (at != NONE && status == ESP_OK)
			status = check_same_name(matching, event, &matching->items[at], err);
		matching->gradient_item[i] = at;
		if (at != NONE)
			matching->items[at].gradient = event->parameter;
		*out_count += at != NONE;
	}
	free(names);
	return status;
}

/* Either the names of the two kinds of file match, or none does; if some do, a gradient without a match is an error. */
static enum esp_status match_gradients(struct matching *matching, struct error *err)
{
	const struct traces *traces = matching->traces;
	const struct trace *first = &traces->workers[0].trace;
	uint32_t distributed = matching->count, named;
	char file[TRACES_FILE_NAME], other[TRACES_FILE_NAME], shown[QUOTE_TEXT];
	enum esp_status status = match_by_name(matching, &named, err);
	for (uint32_t i = 0; i < first->count && status == ESP_OK; i++) {
		const struct trace_event *event = &first->events[i];
		uint32_t server = find_server(matching, event->destination), at = matching->gradient_item[i];
		if (at == NONE && named == 0)
			at = match_by_size(matching, distributed, server, event->bytes);
		if (at == NONE)
			return error_set(err, ESP_EPARSE,
			                 "%s:%" PRIu32 ": %s of %" PRIu64
			                 " bytes has no parameter in %s: a server sends what it sums up",
			                 workload_traces_worker_file(&traces->workers[0], file), event->line,
			                 quote(event->parameter, strlen(event->parameter), shown), event->bytes,
			                 workload_traces_server_file(&traces->servers[server], other));
		matching->items[at].gradient = event->parameter;
		matching->gradient_item[i] = at;
	}
	return status;
}

static enum esp_status match(struct matching *matching, struct error *err)
{
	const struct traces *traces = matching->traces;
	char shown[QUOTE_TEXT];
	bool *found = calloc((size_t)traces->layer_count + 1, sizeof(*found));
	if (!found)
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	read_distribution(matching);
	enum esp_status status = match_layers(matching, found, err);
	if (status == ESP_OK)
		status = match_gradients(matching, err);
	if (status == ESP_OK)
		status = match_layers(matching, found, err); /* layers that model.json names by their gradients */
	for (uint32_t i = 0; i < traces->layer_count && status == ESP_OK; i++)
		if (!found[i])
			status = error_set(err, ESP_EPARSE, "model.json:%d: \"forward_order\"[%" PRIu32 "] %s is in no trace",
			                   traces->order_line, i,
			                   quote(traces->layers[i].name, strlen(traces->layers[i].name), shown));
	free(found);
	return status;
}

/* ---- the model ---- */

static enum esp_status fill_parameters(struct replay *replay, const struct matching *matching, struct error *err)
{
	const struct traces *traces = matching->traces;
	struct model *model = &replay->model;
	uint32_t *seen = calloc((size_t)replay->server_count + 1, sizeof(*seen));
	enum esp_status status = ESP_OK;
	if (!seen)
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	for (uint32_t i = 0; i < matching->count && status == ESP_OK; i++) {
		const struct item *item = &matching->items[i];
		bool is_known = item->layer != NONE;
		double share = is_known ? traces->layers[item->layer].share : 0;
		model->parameters[i] = (struct model_parameter){
			.name = strdup(item->name ? item->name : item->gradient),
			.bytes = item->bytes,
			.forward_order = is_known ? item->layer : 0,
			.variable = seen[item->server]++ * replay->server_count + item->server,
			.forward_share = share < 0 ? 1.0 / traces->layer_count : share,
			.aggregated = item->gradient != NULL,
			.distributed = item->name != NULL,
		};
		model->parameter_count++;
		if (model->distribution_order)
			model->distribution_order[i] = i;
		if (!model->parameters[i].name)
			status = error_set(err, ESP_ENOMEM, "no memory for traces");
	}
	/* The order is unknown: the forward pass is one layer, which needs all parameters. */
	if (traces->layer_count == 0 && model->parameter_count > 0)
		model->parameters[0].forward_share = 1;
	free(seen);
	return status;
}

/* The events of the first file, sorted by name, to identify events of other files. */
static struct named *names_of_events(const struct trace *trace)
{
	struct named *names = calloc((size_t)trace->count + 1, sizeof(*names));
	for (uint32_t i = 0; names && i < trace->count; i++)
		names[i] = (struct named){trace->events[i].parameter, i};
	if (names)
		qsort(names, trace->count, sizeof(*names), by_name);
	return names;
}

static enum esp_status fill_times(struct replay *replay, const struct matching *matching, struct error *err)
{
	const struct traces *traces = matching->traces;
	const struct trace *first = &traces->workers[0].trace;
	struct model *model = &replay->model;
	struct named *names = names_of_events(first);
	replay->files = calloc(traces->worker_count, sizeof(*replay->files));
	if (!names || !replay->files) {
		free(names);
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	}
	for (uint32_t f = 0; f < traces->worker_count; f++) {
		const struct trace *trace = &traces->workers[f].trace;
		double *ready = calloc((size_t)matching->count + 1, sizeof(*ready));
		replay->files[replay->file_count++] = (struct replay_file){traces->workers[f].rank,
		                                                           traces->workers[f].iteration, ready};
		for (uint32_t i = 0; ready && i < trace->count; i++) {
			double at = traces->first_gradient_s + trace->events[i].time_s;
			uint32_t item = matching->gradient_item[find(names, first->count, trace->events[i].parameter)];
			ready[item] = at;
			model->parameters[item].grad_ready += at / traces->worker_count;
			model->backward_s = at > model->backward_s ? at : model->backward_s;
		}
	}
	for (uint32_t i = 0; i < matching->count; i++) {
		struct model_parameter *parameter = &model->parameters[i];
		parameter->grad_ready = model->backward_s > 0 ? parameter->grad_ready / model->backward_s : 0;
		parameter->grad_ready = parameter->grad_ready > 1 ? 1 : parameter->grad_ready; /* a sum of rounded numbers */
	}
	free(names);
	for (uint32_t f = 0; f < replay->file_count; f++)
		if (!replay->files[f].ready_s)
			return error_set(err, ESP_ENOMEM, "no memory for traces");
	return ESP_OK;
}

enum esp_status workload_replay_init(struct replay *replay, const struct traces *traces, struct error *err)
{
	uint32_t most = traces->workers[0].trace.count * (traces->server_count ? 1 : 2);
	for (uint32_t i = 0; i < traces->server_count; i++)
		most += traces->servers[i].trace.count;
	*replay = (struct replay){.server_count = traces->server_count ? traces->server_count : 1};
	struct model *model = &replay->model;
	struct matching matching = {
		.traces = traces,
		.has_one_way = has_one_way(traces),
		.items = calloc((size_t)most + 1, sizeof(*matching.items)),
		.gradient_item = calloc((size_t)traces->workers[0].trace.count + 1, sizeof(*matching.gradient_item)),
	};
	*model = (struct model){
		.name = strdup(traces->name),
		.about = strdup("from traces"),
		.time_source = strdup("recorded"),
		.forward_s = traces->forward_s,
		.batch = 1,
		.slowest_factor = 1,
		.distribution_factor = 1,
		.parameters = calloc((size_t)most + 1, sizeof(*model->parameters)),
		.distribution_order = calloc((size_t)most + 1, sizeof(*model->distribution_order)),
	};
	enum esp_status status = ESP_OK;
	if (!matching.items || !matching.gradient_item || !model->name || !model->about || !model->time_source ||
	    !model->parameters || !model->distribution_order)
		status = error_set(err, ESP_ENOMEM, "no memory for traces");
	if (status == ESP_OK)
		status = match(&matching, err);
	if (status == ESP_OK)
		status = fill_parameters(replay, &matching, err);
	if (status == ESP_OK)
		status = fill_times(replay, &matching, err);
	if (status == ESP_OK)
		status = workload_model_share_backward(model, err);
	free(matching.items);
	free(matching.gradient_item);
	return status;
}

void workload_replay_fini(struct replay *replay)
{
	for (uint32_t i = 0; i < replay->file_count; i++)
		free(replay->files[i].ready_s);
	free(replay->files);
	workload_model_fini(&replay->model);
	*replay = (struct replay){0};
}

/* The first file of an iteration, or its insertion point. */
static uint32_t first_of(const struct replay *replay, uint64_t iteration)
{
	uint32_t low = 0, high = replay->file_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (replay->files[middle].iteration < iteration)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool was_recorded(const struct replay *replay, uint32_t worker, uint32_t iteration)
{
	for (uint32_t i = first_of(replay, iteration); i < replay->file_count && replay->files[i].iteration == iteration;
	     i++)
		if (replay->files[i].rank == worker)
			return true;
	return false;
}

struct replay_coverage workload_replay_coverage(const struct replay *replay, uint32_t workers, uint32_t iterations)
{
	struct replay_coverage found = {0};
	for (uint32_t k = 0; k < iterations; k++)
		found.iterations += first_of(replay, k) != first_of(replay, (uint64_t)k + 1);
	for (uint32_t w = 0; w < workers; w++) {
		uint32_t own = 0;
		for (uint32_t k = 0; k < iterations; k++)
			own += was_recorded(replay, w, k);
		found.workers += own > 0;
		found.drawn += iterations - own;
	}
	return found;
}

const struct replay_file *workload_replay_pick(const struct replay *replay, uint32_t worker, uint32_t iteration,
                                               uint64_t seed)
{
	uint32_t from = first_of(replay, iteration), to = first_of(replay, (uint64_t)iteration + 1);
	struct rng rng;
	for (uint32_t i = from; i < to; i++)
		if (replay->files[i].rank == worker)
			return &replay->files[i];
	if (from == to) {
		from = 0;
		to = replay->file_count;
	}
	/* Each worker and iteration has its own draw: more workers do not change the others' draws. */
	rng_init(&rng, seed ^ ((uint64_t)worker << 32 | iteration) * UINT64_C(0x9e3779b97f4a7c15));
	return &replay->files[from + rng_below(&rng, to - from)];
}
