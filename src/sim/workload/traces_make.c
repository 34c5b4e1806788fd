#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sim/workload/load.h"
#include "sim/workload/traces_edit.h"

/* Parameters by forward order, or in the model's order of sending. The caller frees it. */
struct placed {
	uint32_t order, index;
};

static int by_order(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static struct placed *forward_order(const struct model *model)
{
	struct placed *order = calloc((size_t)model->parameter_count + 1, sizeof(*order));
	for (uint32_t i = 0; order && i < model->parameter_count; i++)
		order[i] = (struct placed){model->parameters[i].forward_order, i};
	if (order)
		qsort(order, model->parameter_count, sizeof(*order), by_order);
	return order;
}

static double first_ready(const struct model *model)
{
	double first = 1;
	for (uint32_t i = 0; i < model->parameter_count; i++)
		if (model->parameters[i].aggregated && model->parameters[i].grad_ready < first)
			first = model->parameters[i].grad_ready;
	return first;
}

static enum esp_status make_worker(struct traces *traces, const struct model *model, uint32_t rank, uint32_t iteration,
                                   const struct traces_make *how, double factor, struct error *err)
{
	char source[24], destination[24];
	struct traces_worker *worker = workload_traces_add_worker(traces, rank, iteration);
	double first = first_ready(model);
	enum esp_status status = worker ? ESP_OK : error_set(err, ESP_ELIMIT, "no memory for more workers, or more than %u",
	                                                     TRACES_FILES_MAX);
	snprintf(source, sizeof source, "worker%" PRIu32, rank);
	for (uint32_t i = 0; i < model->parameter_count && status == ESP_OK; i++) {
		const struct model_parameter *parameter = &model->parameters[i];
		snprintf(destination, sizeof destination, "server%" PRIu32, parameter->variable % how->servers);
		if (parameter->aggregated)
			status =
				workload_trace_add(&worker->trace,
			                       &(struct trace_event){(parameter->grad_ready - first) * model->backward_s * factor,
			                                             parameter->name, parameter->bytes, source, destination, 0},
			                       err);
	}
	return status == ESP_OK ? workload_trace_sort(&worker->trace, err) : status;
}

static enum esp_status make_servers(struct traces *traces, const struct model *model, const struct placed *order,
                                    uint32_t servers, struct error *err)
{
	char source[TRACES_SERVER_NAME + 8], workers[] = "workers";
	for (uint32_t s = 0; s < servers; s++) {
		char number[16];
		snprintf(number, sizeof number, "%" PRIu32, s);
		if (!workload_traces_add_server(traces, number))
			return error_set(err, ESP_ELIMIT, "no memory for more servers, or more than %u", TRACES_FILES_MAX);
	}
	enum esp_status status = ESP_OK;
	for (uint32_t i = 0; i < model->parameter_count && status == ESP_OK; i++) {
		const struct model_parameter *parameter = &model->parameters[model->distribution_order
		                                                             ? model->distribution_order[i] : order[i].index];
		struct traces_server *server = &traces->servers[parameter->variable % servers];
		snprintf(source, sizeof source, "server%s", server->name);
		if (parameter->distributed)
			status = workload_trace_add(
				&server->trace,
				&(struct trace_event){server->trace.count, parameter->name, parameter->bytes, source, workers, 0}, err);
	}
	/* Drops servers without a parameter. */
	uint32_t kept = 0;
	for (uint32_t s = 0; s < traces->server_count; s++)
		if (traces->servers[s].trace.count > 0)
			traces->servers[kept++] = traces->servers[s];
	traces->server_count = kept;
	return status;
}

enum esp_status workload_traces_make(struct traces *traces, const struct model *model, const struct traces_make *how,
                                     struct error *err)
{
	struct rng rng;
	struct load load = {0};
	*traces = (struct traces){.name = strdup(model->name), .forward_s = model->forward_s,
	                          .first_gradient_s = first_ready(model) * model->backward_s};
	struct placed *order = forward_order(model);
	if (!order || !traces->name) {
		free(order);
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	}
	enum esp_status status = workload_load_init(&load, model, how->workers, 0, err);
	rng_init(&rng, how->seed);
	for (uint32_t i = 0; i < model->parameter_count && status == ESP_OK; i++) {
		const struct model_parameter *parameter = &model->parameters[order[i].index];
		if (parameter->distributed && !workload_traces_add_layer(traces, parameter->name, parameter->forward_share))
			status = error_set(err, ESP_ENOMEM, "no memory for traces");
	}
	for (uint32_t iteration = 0; iteration < how->iterations && status == ESP_OK; iteration++)
		for (uint32_t rank = 0; rank < how->workers && status == ESP_OK; rank++)
			status = make_worker(traces, model, rank, iteration, how,
			                     load.worker_factor[rank] * (1 + how->jitter * rng_unit(&rng)), err);
	if (status == ESP_OK)
		status = make_servers(traces, model, order, how->servers, err);
	workload_load_fini(&load);
	free(order);
	return status == ESP_OK ? workload_traces_finish(traces, err) : status;
}

void workload_traces_scale(struct traces *traces, double factor)
{
	traces->forward_s /= factor;
	traces->first_gradient_s /= factor;
	for (uint32_t f = 0; f < traces->worker_count; f++)
		for (uint32_t i = 0; i < traces->workers[f].trace.count; i++)
			traces->workers[f].trace.events[i].time_s /= factor;
}
