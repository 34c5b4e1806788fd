/*
 * model_repeat.c - copies of layers: their positions, times and gradients. Pure.
 */
#include "sim/workload/model_repeat.h"

#include <stdlib.h>
#include <string.h>

#include "base/quote.h"

#define PARAMETERS_MOST (1u << 20)

/* The layers to copy. */
struct module {
	uint32_t first, last; /* forward_order  */
	uint32_t layers;      /* last - first + 1 */
	uint32_t parameters;
	double forward_s, backward_s;
};

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static enum esp_status module_find(struct module *module, const struct model *model, const char *prefix,
                                   struct error *err)
{
	char shown[QUOTE_TEXT];

	*module = (struct module){.first = UINT32_MAX};
	for (uint32_t i = 0; i < model->parameter_count; i++) {
		const struct model_parameter *parameter = &model->parameters[i];

		if (!begins_with(parameter->name, prefix))
			continue;
		if (!parameter->aggregated)
			return error_set(err, ESP_EINVAL, "%s is not aggregated and cannot be copied", parameter->name);
		module->parameters++;
		module->first = parameter->forward_order < module->first ? parameter->forward_order : module->first;
		module->last = parameter->forward_order > module->last ? parameter->forward_order : module->last;
		module->forward_s += parameter->forward_share * model->forward_s;
		module->backward_s += parameter->backward_share * model->backward_s;
	}
	if (module->parameters == 0)
		return error_set(err, ESP_EINVAL, "no parameter of %s begins with %s", model->name,
		                 quote(prefix, strlen(prefix), shown));
	module->layers = module->last - module->first + 1;
	for (uint32_t i = 0; i < model->parameter_count; i++) {
		const struct model_parameter *parameter = &model->parameters[i];

		if (!begins_with(parameter->name, prefix) && parameter->forward_order >= module->first &&
		    parameter->forward_order <= module->last)
			return error_set(err, ESP_EINVAL, "%s lies among the layers that begin with %s", parameter->name,
			                 quote(prefix, strlen(prefix), shown));
	}
	return ESP_OK;
}

/* The first free variable number. */
static uint32_t next_variable(const struct model *model)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < model->parameter_count; i++)
		next = model->parameters[i].variable >= next ? model->parameters[i].variable + 1 : next;
	for (uint32_t i = 0; i < model->average_count; i++)
		next = model->averages[i].variable >= next ? model->averages[i].variable + 1 : next;
	return next;
}

/*
 * Seconds into the backward pass at which a gradient is ready: it passes the layers from the last to the first,
 * so copies come before their original, the last one first.
 */
static double ready_s(const struct model *model, const struct module *module, const struct model_parameter *from,
                      uint32_t copies, uint32_t copy)
{
	double seconds = from->grad_ready * model->backward_s;

	if (from->forward_order < module->first)
		return seconds + copies * module->backward_s;
	if (from->forward_order > module->last)
		return seconds;
	return seconds + (copies - copy) * module->backward_s;
}

static bool put_parameter(struct model *out, const struct model *model, const struct module *module,
                          const struct model_parameter *from, uint32_t copies, uint32_t copy, uint32_t variable)
{
	struct model_parameter *to = &out->parameters[out->parameter_count];

	*to = *from;
	to->name = strdup(from->name);
	if (!to->name)
		return false;
	out->parameter_count++;
	to->variable = variable;
	to->forward_order += copy * module->layers + (from->forward_order > module->last ? copies * module->layers : 0);
	to->forward_share *= model->forward_s / out->forward_s;
	to->backward_share *= model->backward_s / out->backward_s;
	if (from->aggregated)
		to->grad_ready = ready_s(model, module, from, copies, copy) / out->backward_s;
	return true;
}

/* Appends every parameter with its copies; first_of: index of each original in the output. */
static bool put_parameters(struct model *out, const struct model *model, const struct module *module, uint32_t copies,
                           uint32_t *first_of)
{
	uint32_t variable = next_variable(model);

	for (uint32_t i = 0; i < model->parameter_count; i++) {
		const struct model_parameter *from = &model->parameters[i];
		bool is_copied = from->forward_order >= module->first && from->forward_order <= module->last;

		first_of[i] = out->parameter_count;
		if (!put_parameter(out, model, module, from, copies, 0, from->variable))
			return false;
		for (uint32_t copy = 1; is_copied && copy <= copies; copy++) {
			if (!put_parameter(out, model, module, from, copies, copy, variable++))
				return false;
		}
	}
	first_of[model->parameter_count] = out->parameter_count;
	return true;
}

static bool put_averages(struct model *out, const struct model *model)
{
	for (uint32_t i = 0; i < model->average_count; i++) {
		out->averages[i] = model->averages[i];
		out->averages[i].name = strdup(model->averages[i].name);
		if (!out->averages[i].name)
			return false;
		out->average_count++;
	}
	return true;
}

static bool put_calibrated(struct model *out, const struct model *model, const uint32_t *first_of)
{
	uint32_t at = 0;

	if (model->worker_factors) {
		out->worker_factors = malloc(model->worker_factor_count * sizeof(*out->worker_factors));
		if (!out->worker_factors)
			return false;
		memcpy(out->worker_factors, model->worker_factors, model->worker_factor_count * sizeof(*out->worker_factors));
		out->worker_factor_count = model->worker_factor_count;
	}
	if (!model->distribution_order)
		return true;
	out->distribution_order = calloc((size_t)out->parameter_count + 1, sizeof(*out->distribution_order));
	for (uint32_t i = 0; out->distribution_order && i < model->parameter_count; i++) {
		for (uint32_t to = first_of[model->distribution_order[i]]; to < first_of[model->distribution_order[i] + 1];
		     to++)
			out->distribution_order[at++] = to;
	}
	return out->distribution_order != NULL;
}

enum esp_status workload_model_repeat(const struct model *model, const char *prefix, uint32_t copies, struct model *out,
                                      struct error *err)
{
	struct module module;
	enum esp_status status = module_find(&module, model, prefix, err);

	*out = (struct model){0};
	if (status != ESP_OK)
		return status;
	uint64_t count = model->parameter_count + (uint64_t)copies * module.parameters;
	if (count > PARAMETERS_MOST)
		return error_set(err, ESP_ELIMIT, "%u copies of %u parameters are too many", copies, module.parameters);
	*out = *model;
	out->name = strdup(model->name);
	out->about = strdup(model->about);
	out->time_source = strdup(model->time_source);
	out->parameters = calloc(count + 1, sizeof(*out->parameters));
	out->averages = calloc((size_t)model->average_count + 1, sizeof(*out->averages));
	out->parameter_count = out->average_count = out->worker_factor_count = 0;
	out->worker_factors = NULL;
	out->distribution_order = NULL;
	out->forward_s += copies * module.forward_s;
	out->backward_s += copies * module.backward_s;
	uint32_t *first_of = calloc((size_t)model->parameter_count + 1, sizeof(*first_of));
	bool is_made = out->name && out->about && out->time_source && out->parameters && out->averages && first_of &&
	               put_parameters(out, model, &module, copies, first_of) && put_averages(out, model) &&
	               put_calibrated(out, model, first_of);
	free(first_of);
	return is_made ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for a model");
}
