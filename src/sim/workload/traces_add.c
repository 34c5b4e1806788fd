/*
 * traces_add.c - adds copies of a model's layers to traces, for networks that were never trained. Pure.
 *
 *     before      ... c  b  a          gradients of a worker over time
 *     after       ... c  b+2  b+1  b  a
 *
 * Copies of b follow it in the forward pass, so their gradients come first, at the intervals of the model;
 * later gradients are delayed by the sum.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "sim/workload/traces_edit.h"

struct part {
	const struct model_parameter *parameter;
	double after_s; /* from the start of the module's backward pass until its gradient is ready */
};

struct module {
	struct part *parts; /* in the order of the gradients */
	uint32_t count;
	uint32_t named; /* number of copies that the traces have already */
	double forward_s, backward_s;
};

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static int by_ready(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->parameter->grad_ready != y->parameter->grad_ready)
		return x->parameter->grad_ready < y->parameter->grad_ready ? -1 : 1;
	return x->parameter < y->parameter ? -1 : x->parameter > y->parameter;
}

/* The time of the last gradient before these: when their computation began. */
static double began(const struct model *model, double first)
{
	double before = 0;
	for (uint32_t i = 0; i < model->parameter_count; i++)
		if (model->parameters[i].aggregated && model->parameters[i].grad_ready < first &&
		    model->parameters[i].grad_ready > before)
			before = model->parameters[i].grad_ready;
	return before;
}

static enum esp_status module_init(struct module *module, const struct model *model, const char *prefix,
                                   struct error *err)
{
	char shown[QUOTE_TEXT];
	*module = (struct module){.parts = calloc((size_t)model->parameter_count + 1, sizeof(*module->parts))};
	if (!module->parts)
		return error_set(err, ESP_ENOMEM, "no memory for layers");
	for (uint32_t i = 0; i < model->parameter_count; i++) {
		const struct model_parameter *parameter = &model->parameters[i];
		if (!parameter->aggregated || !begins_with(parameter->name, prefix))
			continue;
		module->parts[module->count++].parameter = parameter;
		module->forward_s += parameter->forward_share * model->forward_s;
	}
	if (module->count == 0)
		return error_set(err, ESP_EINVAL, "no parameter of %s begins with %s", model->name,
		                 quote(prefix, strlen(prefix), shown));
	qsort(module->parts, module->count, sizeof(*module->parts), by_ready);
	double from = began(model, module->parts[0].parameter->grad_ready);
	for (uint32_t i = 0; i < module->count; i++)
		module->parts[i].after_s = (module->parts[i].parameter->grad_ready - from) * model->backward_s;
	module->backward_s = module->parts[module->count - 1].after_s;
	return ESP_OK;
}

/* The highest number of a copy in the traces. */
static uint32_t copies_there(const struct trace *trace, const char *prefix)
{
	size_t length = strlen(prefix);
	uint32_t most = 0;
	for (uint32_t i = 0; i < trace->count; i++) {
		const char *name = trace->events[i].parameter;
		unsigned long number = begins_with(name, prefix) && name[length] == '+' ? strtoul(name + length + 1, NULL, 10)
		                                                                        : 0;
		most = number > most && number < TRACE_EVENTS_MAX ? (uint32_t)number : most;
	}
	return most;
}

/* "mixed_35x35x288b/pool/beta" becomes "mixed_35x35x288b+2/pool/beta" in the second copy. The caller frees it. */
static char *copy_name(const char *name, const char *prefix, uint32_t copy)
{
	char *text = NULL;
	size_t length = strlen(prefix);
	return asprintf(&text, "%s+%" PRIu32 "%s", prefix, copy, name + length) < 0 ? NULL : text;
}

/* Inserts an event behind the first `at` ones. */
static enum esp_status insert(struct trace *trace, uint32_t at, const struct trace_event *event, struct error *err)
{
	enum esp_status status = workload_trace_add(trace, event, err);
	if (status != ESP_OK)
		return status;
	struct trace_event last = trace->events[trace->count - 1];
	memmove(&trace->events[at + 1], &trace->events[at], (trace->count - 1 - at) * sizeof(last));
	trace->events[at] = last;
	return ESP_OK;
}

/* The server of a new parameter: continues round-robin. */
static uint32_t server_of(const struct traces *traces, const struct module *module, uint32_t copy, uint32_t part)
{
	uint32_t there = 0;
	for (uint32_t s = 0; s < traces->server_count; s++)
		there += traces->servers[s].trace.count;
	return traces->server_count ? (there + (copy - 1) * module->count + part) % traces->server_count : 0;
}

/* ---- the workers' files ---- */

static uint32_t first_named(const struct trace *trace, const char *prefix)
{
	uint32_t i = 0;
	while (i < trace->count && !begins_with(trace->events[i].parameter, prefix))
		i++;
	return i;
}

static enum esp_status add_to_worker(const struct traces *traces, struct trace *trace,
                                     const struct traces_addition *addition, const struct module *module,
                                     const uint32_t *servers, struct error *err)
{
	const char *after = addition->after ? addition->after : addition->prefix;
	uint32_t at = first_named(trace, after);
	char *source = strdup(trace->events[0].source), *usual = strdup(trace->events[0].destination);
	double start = at > 0 ? trace->events[at - 1].time_s : 0;
	enum esp_status status = source && usual ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for layers");
	for (uint32_t i = at; i < trace->count; i++)
		trace->events[i].time_s += addition->count * module->backward_s;
	for (uint32_t copy = addition->count, done = 0; copy > 0 && status == ESP_OK; copy--, done++)
		for (uint32_t i = 0; i < module->count && status == ESP_OK; i++) {
			const struct part *part = &module->parts[i];
			char *name = copy_name(part->parameter->name, addition->prefix, module->named + copy);
			uint32_t server = servers[(copy - 1) * module->count + i];
			char *destination = traces->server_count ? traces->servers[server].trace.events[0].source : usual;
			status = name
			         ? insert(trace, at, &(struct trace_event){start + done * module->backward_s + part->after_s, name,
			                                                        part->parameter->bytes, source, destination, 0},
			                  err)
			              : error_set(err, ESP_ENOMEM, "no memory for layers");
			at++;
			free(name);
		}
	free(source);
	free(usual);
	return status;
}

/* ---- the servers' files and the forward pass ---- */

/* Behind the last parameter that they follow; a server without any of those sends them last. */
static enum esp_status add_to_servers(struct traces *traces, const struct traces_addition *addition,
                                      const struct module *module, const uint32_t *servers, struct error *err)
{
	const char *after = addition->after ? addition->after : addition->prefix;
	enum esp_status status = ESP_OK;
	for (uint32_t s = 0; s < traces->server_count && status == ESP_OK; s++) {
		struct trace *trace = &traces->servers[s].trace;
		uint32_t at = trace->count;
		for (uint32_t i = 0; i < trace->count; i++)
			if (begins_with(trace->events[i].parameter, after))
				at = i + 1;
		char *source = strdup(trace->events[0].source), *destination = strdup(trace->events[0].destination);
		double time = trace->events[at - 1].time_s;
		status = source && destination ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for layers");
		for (uint32_t copy = 1; copy <= addition->count && status == ESP_OK; copy++)
			for (uint32_t i = module->count; i-- > 0 && status == ESP_OK;) {
				const struct model_parameter *parameter = module->parts[i].parameter;
				if (servers[(copy - 1) * module->count + i] != s)
					continue;
				char *name = copy_name(parameter->name, addition->prefix, module->named + copy);
				status = name ? insert(trace, at++,
				                       &(struct trace_event){time, name, parameter->bytes, source, destination, 0}, err)
				              : error_set(err, ESP_ENOMEM, "no memory for layers");
				free(name);
			}
		free(source);
		free(destination);
	}
	return status;
}

/* Behind the last layer that they follow; the shares refer to the longer forward pass. */
static enum esp_status add_to_layers(struct traces *traces, const struct traces_addition *addition,
                                     const struct module *module, const struct model *model, struct error *err)
{
	const char *after = addition->after ? addition->after : addition->prefix;
	double longer = traces->forward_s + addition->count * module->forward_s;
	uint32_t before = traces->layer_count, at = before, added = addition->count * module->count;
	for (uint32_t i = 0; i < before; i++) {
		double share = traces->layers[i].share < 0 ? 1.0 / before : traces->layers[i].share;
		traces->layers[i].share = longer > 0 ? share * traces->forward_s / longer : share;
		if (begins_with(traces->layers[i].name, after))
			at = i + 1;
	}
	for (uint32_t copy = 1; before > 0 && copy <= addition->count; copy++)
		for (uint32_t i = module->count; i-- > 0;) {
			const struct model_parameter *parameter = module->parts[i].parameter;
			char *name = copy_name(parameter->name, addition->prefix, module->named + copy);
			bool is_added =
				name && workload_traces_add_layer(
							traces, name, longer > 0 ? parameter->forward_share * model->forward_s / longer : 0);
			free(name);
			if (!is_added)
				return error_set(err, ESP_ENOMEM, "no memory for layers");
		}
	traces->forward_s = longer;
	if (before == 0)
		return ESP_OK;
	struct traces_layer *list = malloc(((size_t)added + 1) * sizeof(*list));
	if (!list)
		return error_set(err, ESP_ENOMEM, "no memory for layers");
	memcpy(list, &traces->layers[before], added * sizeof(*list));
	memmove(&traces->layers[at + added], &traces->layers[at], (before - at) * sizeof(*list));
	memcpy(&traces->layers[at], list, added * sizeof(*list));
	free(list);
	return ESP_OK;
}

/* If the new gradients are the very first, times start from them. */
static void start_at_zero(struct traces *traces)
{
	double first = INFINITY;
	for (uint32_t f = 0; f < traces->worker_count; f++)
		first = fmin(first, traces->workers[f].trace.events[0].time_s);
	for (uint32_t f = 0; f < traces->worker_count; f++)
		for (uint32_t i = 0; i < traces->workers[f].trace.count; i++)
			traces->workers[f].trace.events[i].time_s -= first;
	traces->first_gradient_s += first;
}

static enum esp_status check_place(const struct traces *traces, const char *after, struct error *err)
{
	char shown[QUOTE_TEXT];
	if (first_named(&traces->workers[0].trace, after) < traces->workers[0].trace.count)
		return ESP_OK;
	return error_set(err, ESP_EINVAL, "no gradient of the traces begins with %s; say behind which one the layers come",
	                 quote(after, strlen(after), shown));
}

enum esp_status workload_traces_add(struct traces *traces, const struct traces_addition *addition, struct error *err)
{
	struct module module;
	uint32_t *servers = NULL;
	enum esp_status status = check_place(traces, addition->after ? addition->after : addition->prefix, err);
	if (status != ESP_OK)
		return status;
	status = module_init(&module, addition->model, addition->prefix, err);
	module.named = copies_there(&traces->workers[0].trace, addition->prefix);
	if (status == ESP_OK && (uint64_t)module.count * addition->count > TRACE_EVENTS_MAX)
		status = error_set(err, ESP_ELIMIT, "%" PRIu32 " copies of %" PRIu32 " parameters are too many",
		                   addition->count, module.count);
	if (status == ESP_OK) {
		servers = calloc((size_t)module.count * addition->count + 1, sizeof(*servers));
		if (!servers)
			status = error_set(err, ESP_ENOMEM, "no memory for layers");
	}
	for (uint32_t copy = 1; servers && copy <= addition->count; copy++)
		for (uint32_t i = 0; i < module.count; i++)
			servers[(copy - 1) * module.count + i] = server_of(traces, &module, copy, i);
	for (uint32_t f = 0; f < traces->worker_count && status == ESP_OK; f++)
		status = add_to_worker(traces, &traces->workers[f].trace, addition, &module, servers, err);
	if (status == ESP_OK)
		status = add_to_servers(traces, addition, &module, servers, err);
	if (status == ESP_OK)
		status = add_to_layers(traces, addition, &module, addition->model, err);
	free(module.parts);
	free(servers);
	if (status == ESP_OK)
		start_at_zero(traces);
	return status == ESP_OK ? workload_traces_finish(traces, err) : status;
}
